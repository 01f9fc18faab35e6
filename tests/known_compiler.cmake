# Gives the tree that `folder` is to become what CMake found out of the C++ compiler when it configured
# the tree `build`: to ask again takes most of the time of a small configuration. `cmake -B <folder>`
# must be called with the options in `result`, or CMake takes what it finds there for a leftover.
function(tilegate_copy_known_compiler build folder result)
  set(known CMakeFiles/${CMAKE_VERSION})
  foreach(name IN ITEMS CMakeSystem CMakeCXXCompiler)
    file(COPY ${build}/${known}/${name}.cmake DESTINATION ${folder}/${known})
  endforeach()
  set(${result} -DCMAKE_PLATFORM_INFO_INITIALIZED=ON PARENT_SCOPE)
endfunction()
