# Compiles a kernel source to an instrumented object file.
find_program(TILEGATE_CLANG
             NAMES clang++ clang++-14 clang++-15 clang++-16 clang++-17 clang++-18 clang++-19
             DOC "The clang that compiles counted kernels")
if(NOT TILEGATE_CLANG)
  message(FATAL_ERROR "The counted kernels need clang++: install clang, or configure with "
                      "-DTILEGATE_BUILD_COUNTERS=OFF")
endif()
include(${CMAKE_CURRENT_LIST_DIR}/../plain/plain.cmake)
if(NOT TILEGATE_PYTHON)
  message(FATAL_ERROR "The counted kernels need Python 3.9 or newer: install python3, or configure "
                      "with -DTILEGATE_BUILD_COUNTERS=OFF")
endif()

# The flags are the same for every build type, because counts must not depend on it:
# - no vectorization: it would merge accesses that are separate on a GPU;
# - every `#pragma unroll` holds, however long the loop: arrays in registers must not become memory;
# - not more than -O1: duplicated code would count one warp instruction as two;
# - no loop idioms: clang traces a call of memcpy as one access.
set(TILEGATE_COUNTED_FLAGS
    -std=c++20 -O1 -gline-tables-only -ffp-contract=on -fno-vectorize -fno-slp-vectorize -fPIC
    -fvisibility=hidden -fsanitize-coverage=func,trace-loads,trace-stores -DTILEGATE_COUNTED
    -mllvm -inline-threshold=20000
    -mllvm -disable-loop-idiom-all -mllvm -pragma-unroll-threshold=1000000 -Wno-unknown-pragmas -Wno-pass-failed)

set(TILEGATE_COUNTED_INCLUDES
    ${PROJECT_SOURCE_DIR}/kernels/include ${PROJECT_SOURCE_DIR}/kernels/common/include
    ${PROJECT_SOURCE_DIR}/kernels/device/include ${PROJECT_SOURCE_DIR}/kernels/catalogue/include
    ${PROJECT_BINARY_DIR}/kernels/private)

# Sets `object` to the instrumented object file of a kernel source. `module`: unique in a program.
function(tilegate_counted_object object source module)
  cmake_path(ABSOLUTE_PATH source NORMALIZE)
  cmake_path(GET source STEM name)
  set(base ${CMAKE_CURRENT_BINARY_DIR}/${module}_${name})
  set(includes ${TILEGATE_COUNTED_INCLUDES})
  list(TRANSFORM includes PREPEND -I)
  tilegate_plain_launcher(${source} launcher)
  add_custom_command(
    OUTPUT ${base}.o
    COMMAND ${launcher} ${TILEGATE_CLANG} ${TILEGATE_COUNTED_FLAGS} ${includes} ${ARGN}
            -MD -MT ${base}.o -MF ${base}.d -S -emit-llvm -x c++ ${source} -o ${base}.ll
    COMMAND ${TILEGATE_PYTHON} -B ${PROJECT_SOURCE_DIR}/kernels/device/cpu/counted/instrument.py
            ${base}.ll ${base}.counted.ll --module ${module} --root ${PROJECT_SOURCE_DIR}
    COMMAND ${TILEGATE_CLANG} -O0 -fPIC -Xclang -disable-llvm-passes -c ${base}.counted.ll
            -o ${base}.o
    DEPENDS ${source} ${PROJECT_SOURCE_DIR}/kernels/device/cpu/counted/instrument.py
    DEPFILE ${base}.d
    COMMENT "Counting ${name}"
    VERBATIM)
  set(${object} ${base}.o PARENT_SCOPE)
endfunction()
