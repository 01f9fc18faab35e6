# cmake -DFOLDER=<scratch> -DSOURCE=<repository> -DHAS_NVCC=<ON or OFF> -P chosen_device.cmake
# An embedder who asks for no device gets CUDA where nvcc is, and is told.
file(REMOVE_RECURSE ${FOLDER})
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/embedded -B ${FOLDER} -G Ninja
          -DTILEGATE_SOURCE=${SOURCE}
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE failed)
set(expected "taking simt")
if(HAS_NVCC)
  set(expected "taking cuda")
endif()
if(failed OR NOT output MATCHES "TILEGATE_DEVICE is not set; ${expected}")
  message(FATAL_ERROR "not found: ${expected}\n${output}")
endif()
