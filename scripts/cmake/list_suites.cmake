# What CTest reads to know the suites of one gtest program (onerank_discover_suites, which sets `name`,
# `program`, `prefix` and `environment`).
if(NOT EXISTS "${program}")
  add_test("${name}_NOT_BUILT" "${name}_NOT_BUILT")
  return()
endif()
execute_process(COMMAND "${program}" --gtest_list_tests
  OUTPUT_VARIABLE lines RESULT_VARIABLE status TIMEOUT 120)
if(NOT status EQUAL 0)
  add_test("${prefix}${name}" "${program}")  # whole, and says why
  return()
endif()
# "Suite.", "Values/Suite.", "Suite.  # TypeParam = ...", each followed by its tests behind two spaces.
string(REGEX MATCHALL "\n[^ \n]+\\." suites "\n${lines}")
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "[\n.]" "" suite "${suite}")
  add_test("${prefix}${suite}" "${program}" "--gtest_filter=${suite}.*")
  set_tests_properties("${prefix}${suite}" PROPERTIES ENVIRONMENT "${environment}")
endforeach()
