# The tests of the commands, one ctest entry per file or suite. They know nothing of the device, so
# the plain CPU build alone has them. Without build/venv, which ci/test makes, those that need more
# than this machine's Python report that they are skipped. The COST of an entry is about its seconds:
# long ones begin first, or the last would run alone.
if(NOT TILEGATE_BUILD_TESTS OR NOT TILEGATE_DEVICE STREQUAL "simt" OR TILEGATE_SANITIZE)
  return()
endif()

function(tilegate_add_python_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NEEDS" "PATHS")
  set(needs "")
  if(arg_NEEDS)
    set(needs --needs ${arg_NEEDS})
  endif()
  add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/ci/pytest ${needs} ${arg_PATHS})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 COST 10)
endfunction()

tilegate_add_python_test(gate PATHS
  tests/gate --ignore=tests/gate/test_replay.py --ignore=tests/gate/test_run.py)
tilegate_add_python_test(gate_times PATHS
  tests/gate/test_replay.py tests/gate/test_run.py)
set_tests_properties(gate PROPERTIES COST 50)
set_tests_properties(gate_times PROPERTIES COST 20)
tilegate_add_python_test(project NEEDS check_jsonschema,flit_core,ruamel.yaml PATHS tests/project)
tilegate_add_python_test(commands PATHS
  tests/ci/test_bench.py tests/ci/test_conditions.py tests/ci/test_setup.py)
tilegate_add_python_test(tables PATHS
  tests/profile tests/ci/test_mutants.py tests/ci/test_pages.py tests/ci/test_passport.py
  tests/ci/test_random_problems.py tests/ci/test_shipped.py
  tests/ci/test_stages.py tests/ci/test_tables.py)
tilegate_add_python_test(plain PATHS tests/plain)
tilegate_add_python_test(plots PATHS tests/ci/test_plot.py)
tilegate_add_python_test(workflows NEEDS check_jsonschema,ruamel.yaml PATHS
  tests/ci/test_workflows.py tests/ci/test_zizmor.py)

# The HTML report in a real browser, which ci/test does not install.
find_program(TILEGATE_BROWSER NAMES chromium chromium-browser google-chrome)
if(TILEGATE_BROWSER)
  tilegate_add_python_test(browser PATHS tests/browser)
  set_tests_properties(browser PROPERTIES LABELS browser COST 40)
endif()

# What the kernels use of the GPU, against the committed table: here one architecture of the rungs
# that have changed since it was made, everything with `ci/gate resources`. A table of another nvcc
# release compares nothing, which is a skip.
find_program(TILEGATE_NVCC nvcc PATH_SUFFIXES bin
  HINTS ENV CUDA_HOME /usr/local/cuda ${PROJECT_SOURCE_DIR}/build/nvcc/nvidia/cu13)
if(TILEGATE_NVCC)
  add_test(NAME resources COMMAND ${PROJECT_SOURCE_DIR}/ci/gate resources --changed --arch 90a)
  set_tests_properties(resources PROPERTIES SKIP_RETURN_CODE 4 LABELS resources COST 40)
endif()

# It configures the build folder as a reader would, so nobody may read that meanwhile.
tilegate_add_python_test(readme PATHS tests/ci/test_readme.py)
set_tests_properties(readme PROPERTIES RESOURCE_LOCK build_folder COST 20
  ENVIRONMENT TILEGATE_NO_INSTALL=1)

add_test(NAME format COMMAND ${PROJECT_SOURCE_DIR}/ci/format --check)
add_test(NAME types COMMAND ${PROJECT_SOURCE_DIR}/ci/types)
set_tests_properties(format types PROPERTIES
  SKIP_RETURN_CODE 77 COST 10 ENVIRONMENT TILEGATE_NO_INSTALL=1)
