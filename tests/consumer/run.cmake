# cmake -DCONSUMER=<installed or embedded> -DFOLDER=<scratch> -DBUILD=<tree to install, configured>
#       -DSOURCE=<repository> -DDEVICE=<that an embedded build is for> [-DASK_FOR=<the same>]
#       -DRUN=<ON or OFF> -P run.cmake
# Builds the consumer in a tree of its own and runs it.
include(${CMAKE_CURRENT_LIST_DIR}/../known_compiler.cmake)
file(REMOVE_RECURSE ${FOLDER})
tilegate_copy_known_compiler(${BUILD} ${FOLDER}/build known)
function(call)
  execute_process(COMMAND ${CMAKE_COMMAND} ${ARGN}
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE failed)
  message("${output}")
  if(failed)
    message(FATAL_ERROR "failed: cmake ${ARGN}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

if(CONSUMER STREQUAL "installed")
  find_program(DPKG_DEB dpkg-deb)
  find_program(SHLIBDEPS dpkg-shlibdeps)
  if(DPKG_DEB AND SHLIBDEPS)  # what a release has
    execute_process(COMMAND ${CMAKE_CPACK_COMMAND} -G DEB -B ${FOLDER} -D CPACK_DEBIAN_COMPRESSION_TYPE=none
      WORKING_DIRECTORY ${BUILD} COMMAND_ERROR_IS_FATAL ANY)
    file(GLOB package ${FOLDER}/tilegate*.deb)
    execute_process(COMMAND ${DPKG_DEB} -x ${package} ${FOLDER}/root COMMAND_ERROR_IS_FATAL ANY)
    file(RENAME ${FOLDER}/root/usr ${FOLDER}/prefix)
  else()
    call(--install ${BUILD} --prefix ${FOLDER}/prefix)
  endif()
  set(options -DCMAKE_PREFIX_PATH=${FOLDER}/prefix)
else()
  set(options -DTILEGATE_SOURCE=${SOURCE} -DCMAKE_BUILD_TYPE=None)  # compiles soonest
  if(ASK_FOR)
    list(APPEND options -DTILEGATE_DEVICE=${ASK_FOR})
  endif()
  if(NOT RUN)  # machine code takes long to make
    list(APPEND options -DTILEGATE_CUDA_ARCHITECTURES=90a-virtual)
  endif()
endif()
call(-S ${CMAKE_CURRENT_LIST_DIR}/${CONSUMER} -B ${FOLDER}/build -G Ninja ${known} ${options})
if(CONSUMER STREQUAL "embedded" AND NOT ASK_FOR
   AND NOT output MATCHES "TILEGATE_DEVICE is not set; taking ${DEVICE}")
  message(FATAL_ERROR "not found: taking ${DEVICE}\n${output}")
endif()
call(--build ${FOLDER}/build --target consumer)
if(CONSUMER STREQUAL "embedded" AND DEFINED ENV{TILEGATE_THOROUGH})
  call(--build ${FOLDER}/build --target tilegate_sgemm)  # and the rungs that it chooses from
endif()

execute_process(COMMAND ldd ${FOLDER}/build/consumer OUTPUT_VARIABLE libraries)
if(libraries MATCHES "cublas")
  message(FATAL_ERROR "the consumer links cuBLAS:\n${libraries}")
endif()
if(RUN)
  execute_process(COMMAND ${FOLDER}/build/consumer COMMAND_ERROR_IS_FATAL ANY)
endif()

if(CONSUMER STREQUAL "installed")
  # A project in C alone is told in one sentence.
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/only_c -B ${FOLDER}/only_c
    -G Ninja ${options} OUTPUT_QUIET ERROR_VARIABLE said RESULT_VARIABLE failed)
  if(NOT failed OR NOT said MATCHES "LANGUAGES C CXX" OR said MATCHES "Boost")
    message(FATAL_ERROR "a project in C is not told what to do:\n${said}")
  endif()
  # All of the static library fits into a shared one: it is position-independent.
  file(GLOB static ${FOLDER}/prefix/lib*/libtilegate.a ${FOLDER}/prefix/lib/*/libtilegate.a)
  execute_process(COMMAND c++ -shared -Wl,-z,text -Wl,--whole-archive ${static}
    -Wl,--no-whole-archive -o ${FOLDER}/libwhole.so COMMAND_ERROR_IS_FATAL ANY)
  # A program in C needs no CMake.
  file(GLOB library ${FOLDER}/prefix/lib*/libtilegate.so ${FOLDER}/prefix/lib/*/libtilegate.so)
  cmake_path(GET library PARENT_PATH folder)
  set(call cc ${SOURCE}/tests/blas/program.c -I${FOLDER}/prefix/include -L${folder} -ltilegate
    -Wl,-rpath,${folder} -o ${FOLDER}/program)
  if(DEVICE STREQUAL "simt")
    list(APPEND call -I${SOURCE}/tests/blas/on_cpu)
    execute_process(COMMAND ${call} COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND ${FOLDER}/program COMMAND_ERROR_IS_FATAL ANY)
  endif()
endif()
