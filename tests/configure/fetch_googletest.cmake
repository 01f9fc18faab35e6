# cmake -DFOLDER=<scratch> -DBUILD=<configured tree> -DSOURCE=<repository> -DGOOGLETEST=<its sources>
#       -P fetch_googletest.cmake
# Compiles what all tests share where GoogleTest is not installed and FetchContent provides it, and
# leaves GoogleTest's own library, which takes twice as long and is not ours.
include(${CMAKE_CURRENT_LIST_DIR}/../known_compiler.cmake)
tilegate_copy_known_compiler(${BUILD} ${FOLDER} known)
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${FOLDER} -G Ninja ${known} -DCMAKE_BUILD_TYPE=None
          -DTILEGATE_DEVICE=simt -DTILEGATE_BUILD_BENCH=OFF -DTILEGATE_BUILD_COUNTERS=OFF
          -DCMAKE_OPTIMIZE_DEPENDENCIES=ON
          -DCMAKE_DISABLE_FIND_PACKAGE_Python=ON  # which GoogleTest's own tests need
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
