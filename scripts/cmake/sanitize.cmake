# ONERANK_SANITIZE: the whole tree with the address and undefined-behaviour sanitizers. Only without
# torch, whose wheel is not built with them.
option(ONERANK_SANITIZE "Build with ASan and UBSan (needs ONERANK_TORCH=OFF)" OFF)

if(ONERANK_SANITIZE)
  if(ONERANK_TORCH)
    message(FATAL_ERROR "ONERANK_SANITIZE needs a tree without torch\n  help: add -DONERANK_TORCH=OFF")
  endif()
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
