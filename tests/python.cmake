# Tests of the commands, one ctest entry per file or suite. They do not depend on the device, so only
# the plain CPU build has them. Without build/venv, which ci/test makes, tests that need more than this
# machine's Python report that they are skipped. The COST of an entry is about its seconds: long
# entries start first, so that none runs alone at the end.
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

# tests/ci has a folder per package of ci/tilegate_ci; `gate` runs the folders that are not named here.
tilegate_add_python_test(gate PATHS
  tests/ci --ignore=tests/ci/checks --ignore=tests/ci/commands --ignore=tests/ci/lab
  --ignore=tests/ci/measure --ignore=tests/ci/report)
tilegate_add_python_test(measure PATHS tests/ci/measure --ignore=tests/ci/measure/test_run.py)
tilegate_add_python_test(measure_run PATHS tests/ci/measure/test_run.py)
tilegate_add_python_test(report PATHS tests/ci/report --ignore=tests/ci/report/browser)
tilegate_add_python_test(checks PATHS tests/ci/checks)
tilegate_add_python_test(commands PATHS tests/ci/commands)
tilegate_add_python_test(lab PATHS tests/ci/lab --ignore=tests/ci/lab/test_replay.py)
tilegate_add_python_test(replay PATHS tests/ci/lab/test_replay.py)
set_tests_properties(checks measure PROPERTIES COST 15)
set_tests_properties(replay PROPERTIES COST 25)

# The same with tests/repository and `repository`; readme, below, builds.
set(needs check_jsonschema,codespell_lib,flit_core,ruamel.yaml)
set(workflows
  tests/repository/test_action.py tests/repository/test_words.py
  tests/repository/test_workflows.py tests/repository/test_zizmor.py)
set(others ${workflows} tests/repository/test_guide.py tests/repository/test_readme.py)
list(TRANSFORM others PREPEND --ignore=)
tilegate_add_python_test(workflows NEEDS ${needs} PATHS ${workflows})
tilegate_add_python_test(guide NEEDS ${needs} PATHS tests/repository/test_guide.py)
tilegate_add_python_test(plain PATHS tests/plain)
tilegate_add_python_test(repository PATHS tests/repository ${others})

# The HTML report in a real browser, which ci/test does not install.
find_program(TILEGATE_BROWSER NAMES chromium chromium-browser google-chrome)
if(TILEGATE_BROWSER)
  tilegate_add_python_test(browser PATHS tests/ci/report/browser)
  set_tests_properties(browser PROPERTIES LABELS browser COST 40)
endif()

# What the kernels use of the GPU, against the committed table: here one architecture of the rungs
# that have changed since it was made, everything with `ci/gate check resources`. A table of another nvcc
# release compares nothing, which is a skip.
find_program(TILEGATE_NVCC nvcc PATH_SUFFIXES bin
  HINTS ENV CUDA_HOME /usr/local/cuda ${PROJECT_SOURCE_DIR}/build/nvcc/nvidia/cu13)
if(TILEGATE_NVCC)
  add_test(NAME resources COMMAND ${PROJECT_SOURCE_DIR}/ci/gate check resources --changed --arch 90a)
  set_tests_properties(resources PROPERTIES SKIP_RETURN_CODE 4 LABELS resources COST 40)
endif()

# It configures the build folder, as a reader would, so no other test may use the folder meanwhile.
tilegate_add_python_test(readme PATHS tests/repository/test_readme.py)
set_tests_properties(readme PROPERTIES RESOURCE_LOCK build_folder COST 20
  ENVIRONMENT TILEGATE_NO_INSTALL=1)

add_test(NAME format COMMAND ${PROJECT_SOURCE_DIR}/ci/format --check)
add_test(NAME types COMMAND ${PROJECT_SOURCE_DIR}/ci/types)
set_tests_properties(format types PROPERTIES
  SKIP_RETURN_CODE 77 COST 10 ENVIRONMENT TILEGATE_NO_INSTALL=1)
