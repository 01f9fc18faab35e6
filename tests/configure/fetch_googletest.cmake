# cmake -DFOLDER=<scratch> -DSOURCE=<repository> -DGOOGLETEST=<its sources> -P run.cmake
# Compiles what all tests share where GoogleTest is not installed and FetchContent provides it.
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${FOLDER} -G Ninja -DCMAKE_BUILD_TYPE=None
          -DTILEGATE_DEVICE=simt -DTILEGATE_BUILD_BENCH=OFF -DTILEGATE_BUILD_COUNTERS=OFF
          -DFETCHCONTENT_TRY_FIND_PACKAGE_MODE=NEVER
          -DFETCHCONTENT_SOURCE_DIR_GOOGLETEST=${GOOGLETEST}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${FOLDER} --target gtest tilegate_test_main
  COMMAND_ERROR_IS_FATAL ANY)
if(NOT EXISTS ${FOLDER}/lib/libgtest.a)
  message(FATAL_ERROR "GoogleTest was not built: the fallback did not run")
endif()
