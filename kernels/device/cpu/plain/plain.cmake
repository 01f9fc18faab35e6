# translate.py compiles sources that include <tilegate/device/plain.cuh> for the executor.
include_guard(GLOBAL)
# Not find_package(Python3), which starts the interpreter seven times. The path is sys.executable,
# because `python3` may be a script that searches for the interpreter.
if(NOT DEFINED TILEGATE_PYTHON)
  execute_process(
    COMMAND python3 -c "import sys; print(sys.executable if sys.version_info >= (3, 9) else '')"
    OUTPUT_VARIABLE python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(python)
    set(TILEGATE_PYTHON ${python} CACHE FILEPATH "The Python that instruments counted kernels")
  endif()
endif()

# Sets `launcher` to the command before the compiler if the source includes plain.cuh, else to "".
function(tilegate_plain_launcher source launcher)
  file(STRINGS ${source} found REGEX "^#include <tilegate/device/plain.cuh>" LIMIT_COUNT 1)
  set(${launcher} "" PARENT_SCOPE)
  if(found AND NOT TILEGATE_PYTHON)
    message(FATAL_ERROR "${source} includes plain.cuh, and so needs Python 3.9 or newer: install python3")
  elseif(found)
    set(${launcher} ${TILEGATE_PYTHON} -B ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/translate.py PARENT_SCOPE)
  endif()
endfunction()
