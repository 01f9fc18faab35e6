# cmake -DFOLDER=<scratch> -DSOURCE=<repository> -DGOOGLETEST=<its sources> -P run.cmake
# Compiles what all tests share where GoogleTest is not installed and FetchContent provides it, and
# leaves GoogleTest's own library, which takes twice as long and is not ours.
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${FOLDER} -G Ninja -DCMAKE_BUILD_TYPE=None
          -DTILEGATE_DEVICE=simt -DTILEGATE_BUILD_BENCH=OFF -DTILEGATE_BUILD_COUNTERS=OFF
          -DCMAKE_OPTIMIZE_DEPENDENCIES=ON
          -DFETCHCONTENT_TRY_FIND_PACKAGE_MODE=NEVER
          -DFETCHCONTENT_SOURCE_DIR_GOOGLETEST=${GOOGLETEST}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${FOLDER} --target tilegate_test_main
  COMMAND_ERROR_IS_FATAL ANY)
file(STRINGS ${FOLDER}/build.ninja from_its_sources
  REGEX "INCLUDES = .*${GOOGLETEST}/googletest/include" LIMIT_COUNT 1)
if(NOT from_its_sources)
  message(FATAL_ERROR "Nothing includes GoogleTest's sources: the fallback did not run")
endif()
