# onerank_add_torch_test(NAME SOURCE...): a gtest program that uses libtorch on the CPU and runs without
# any environment.
#
# libtorch_cpu.so of a CUDA wheel needs libcudart and libcupti at start. The virtual GPU's are linked in
# before it, so that no NVIDIA library has to be installed; a library that is loaded is not searched for.
function(onerank_add_torch_test name)
  add_executable(${name} ${ARGN})
  target_link_options(${name} PRIVATE -Wl,--no-as-needed)
  foreach(stub libcudart libcupti)
    if(TARGET ${stub})
      target_link_libraries(${name} PRIVATE ${stub})
    endif()
  endforeach()
  target_link_libraries(${name} PRIVATE onerank::torch GTest::gtest_main)
  onerank_precompile(${name} onerank_torch_headers)
  onerank_warnings(${name})
  # Threads of such small tensors wait for each other in busy loops.
  onerank_discover_suites(${name} ENVIRONMENT OMP_NUM_THREADS=1)
endfunction()
