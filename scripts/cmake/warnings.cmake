# onerank_warnings(TARGET): strict warnings on our own targets only.
function(onerank_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wno-unused-parameter
    -Wno-missing-field-initializers)  # designated initialisers leave out what has a default
endfunction()
