# onerank_warnings(TARGET): strict warnings on our own targets only. They are errors where ONERANK_WERROR is on;
# continuous integration says so in its environment, since other compilers warn of other things.
set(werror OFF)
if(DEFINED ENV{ONERANK_WERROR})
  set(werror "$ENV{ONERANK_WERROR}")
endif()
option(ONERANK_WERROR "take the compiler's warnings for errors" "${werror}")
function(onerank_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
    -Wno-unused-parameter
    -Wno-missing-field-initializers)  # designated initialisers leave out what has a default
  if(ONERANK_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
