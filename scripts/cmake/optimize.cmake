# onerank_runs_rarely(TARGET): its code runs once for a command, or once for a call of torch that does the work. The
# compiler takes two thirds of the time of -O2.
function(onerank_runs_rarely target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()
