include(GoogleTest)

# onerank_discover_tests(TARGET [OPTION...]): each test of a gtest program as a test of CTest's, with
# the options of gtest_discover_tests. The program is asked for its tests when they are run. It has
# two minutes to answer: CMake's five seconds are too short for one that loads libtorch on a busy machine.
function(onerank_discover_tests target)
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120 ${ARGN})
endfunction()
