# onerank_other_instruction_sets(TARGET FILTER): those tests of TARGET, a gtest program, that match FILTER
# once more for each set of instructions that torch and oneDNN can be held to. Their kernels for
# AVX-512, for AVX2 and for neither order and round sums differently (so do AMX's, which they cannot
# be held to): a bound that holds for one of them alone is found here, whatever the machine. One thread:
# beside other tests the threads of these small tensors wait for each other in busy loops.
function(onerank_other_instruction_sets target filter)
  foreach(set IN ITEMS "avx2:AVX2" "default:SSE41")
    string(REPLACE ":" ";" names "${set}")  # of ATen and of oneDNN
    list(GET names 0 aten)
    list(GET names 1 onednn)
    add_test(NAME instruction-sets.${aten}.${target}
      COMMAND "${CMAKE_COMMAND}" -E env OMP_NUM_THREADS=1
              ATEN_CPU_CAPABILITY=${aten} ONEDNN_MAX_CPU_ISA=${onednn} $<TARGET_FILE:${target}> "--gtest_filter=${filter}")
    set_tests_properties(instruction-sets.${aten}.${target} PROPERTIES
      LABELS instruction-sets COST 100)  # minutes on one core: CTest starts them first
  endforeach()
endfunction()
