include(GoogleTest)

# onerank_discover_tests(TARGET [OPTION...]): each test of a gtest program as a test of CTest's, with
# the options of gtest_discover_tests. The program is asked for its tests when they are run. It has
# two minutes to answer: CMake's five seconds are too short for one that loads libtorch on a busy machine.
function(onerank_discover_tests target)
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 ${ARGN})
endfunction()

# onerank_discover_suites(TARGET [PREFIX prefix] [ENVIRONMENT NAME=VALUE...]): each suite of a gtest program as
# a test of CTest's. For programs whose tests are shorter than their start: torch takes a quarter of a
# second to load, a sanitizer a tenth. scripts/lib/count_tests.py counts the cases.
function(onerank_discover_suites target)
  cmake_parse_arguments(PARSE_ARGV 1 suite "" "PREFIX" "ENVIRONMENT")
  set(file "${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake")
  file(GENERATE OUTPUT "${file}" CONTENT "set(name \"${target}\")
set(program \"$<TARGET_FILE:${target}>\")
set(prefix \"${suite_PREFIX}\")
set(environment \"${suite_ENVIRONMENT}\")
include(\"${PROJECT_SOURCE_DIR}/scripts/cmake/list_suites.cmake\")
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${file}")
endfunction()
