# cmake -DFOLDER=<scratch> -DSOURCE=<repository> -DOPTIONS=<of CMake> -DSENTENCE=<regex> -P missing.cmake
# What is missing is said in one sentence that names the package.
file(REMOVE_RECURSE ${FOLDER})
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${FOLDER} -G Ninja -DTILEGATE_DEVICE=simt ${OPTIONS}
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE failed)
string(REGEX REPLACE "[ \n]+" " " output "${output}")
if(NOT failed OR NOT output MATCHES "${SENTENCE}")
  message(FATAL_ERROR "not found: ${SENTENCE}\n${output}")
endif()
