# ONERANK_SANITIZE: ON builds the tree with the address and undefined-behaviour sanitizers; thread
# builds with the thread sanitizer what several threads enter. Only without torch, whose wheel is not
# built with them: where ONERANK_TORCH_DIR is one, the virtual GPU is built too, since it takes no more
# from the wheel than the names of functions.
set(ONERANK_SANITIZE OFF CACHE STRING "ON: ASan and UBSan; thread: TSan (both need ONERANK_TORCH=OFF)")
set_property(CACHE ONERANK_SANITIZE PROPERTY STRINGS OFF ON thread)

if(ONERANK_SANITIZE)
  if(ONERANK_TORCH)
    message(FATAL_ERROR "ONERANK_SANITIZE needs a tree without torch\n  help: add -DONERANK_TORCH=OFF")
  endif()
  if(ONERANK_SANITIZE STREQUAL "thread")
    set(sanitizers -fsanitize=thread)
  else()
    set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all)
  endif()
  # -g1: reports name functions and lines, and no more.
  add_compile_options(${sanitizers} -fno-omit-frame-pointer -g1)
  add_link_options(${sanitizers})
endif()

# For code that calls the tested code: two thirds of the compile time. ASan stops at a null pointer that is used.
set(ONERANK_FEWER_CHECKS "")
if(ONERANK_SANITIZE AND NOT ONERANK_SANITIZE STREQUAL "thread")
  set(ONERANK_FEWER_CHECKS
    -fno-sanitize=null,alignment,vptr,pointer-overflow,object-size,nonnull-attribute,returns-nonnull-attribute)
endif()
