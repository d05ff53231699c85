# What the stubs for another torch are compiled with.

# The packages of CUDA 12 leave out a header that their others include.
add_compile_options("SHELL:-idirafter ${PROJECT_SOURCE_DIR}/sim/virtual_gpu/cuda_headers")

# Wheels before torch 2.7 have strings and lists of libstdc++'s old form: so must all that is linked to them,
# and the system's fmt, which has the new one, is compiled from its headers.
file(STRINGS "${ONERANK_TORCH_DIR}/share/cmake/Torch/TorchConfig.cmake" old_strings
  REGEX "_GLIBCXX_USE_CXX11_ABI=0")
if(old_strings)
  add_compile_definitions(_GLIBCXX_USE_CXX11_ABI=0 FMT_HEADER_ONLY)
endif()
