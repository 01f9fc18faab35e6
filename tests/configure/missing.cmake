# cmake -DFOLDER=<scratch> -DBUILD=<configured tree> -DSOURCE=<repository> -DOPTIONS=<of CMake>
#       -DSENTENCE=<regex> -P missing.cmake
# What is missing is said in one sentence that names the package.
include(${CMAKE_CURRENT_LIST_DIR}/../known_compiler.cmake)
file(REMOVE_RECURSE ${FOLDER})
tilegate_copy_known_compiler(${BUILD} ${FOLDER} known)
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${FOLDER} -G Ninja ${known} -DTILEGATE_DEVICE=simt
          ${OPTIONS}
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE failed)
string(REGEX REPLACE "[ \n]+" " " output "${output}")
if(NOT failed OR NOT output MATCHES "${SENTENCE}")
  message(FATAL_ERROR "not found: ${SENTENCE}\n${output}")
endif()
