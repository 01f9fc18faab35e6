# cmake -DBUILD=<build tree> -DSOURCE=<this folder> -DPREFIX=<scratch folder> -P run.cmake
# Installs the build tree, builds the consumer against it and runs it.
file(REMOVE_RECURSE ${PREFIX})
foreach(step IN ITEMS
    "--install;${BUILD};--prefix;${PREFIX}/install"
    "-S;${SOURCE};-B;${PREFIX}/build;-G;Ninja;-DCMAKE_PREFIX_PATH=${PREFIX}/install"
    "--build;${PREFIX}/build")
  execute_process(COMMAND ${CMAKE_COMMAND} ${step} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
execute_process(COMMAND ${PREFIX}/build/consumer COMMAND_ERROR_IS_FATAL ANY)
