# The target onerank::torch: headers of the installed torch and its two libraries without CUDA.
#
# TorchConfig.cmake of a CUDA wheel asks for a CUDA toolkit, which Onerank does not need: it loads
# libtorch_cuda.so at run time (for the devices `cuda` and `virtual`).

if(NOT ONERANK_TORCH_DIR)
  message(FATAL_ERROR
    "no torch: there is none in ${PROJECT_SOURCE_DIR}/.venv, and ONERANK_TORCH_DIR names none\n"
    "  help: run scripts/quickstart, which installs one, or give -DONERANK_TORCH_DIR=<site-packages>/torch")
endif()
if(NOT EXISTS "${ONERANK_TORCH_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR
    "no torch at ONERANK_TORCH_DIR = ${ONERANK_TORCH_DIR}: it has no lib/libtorch_cpu.so\n"
    "  help: give -DONERANK_TORCH_DIR=<site-packages>/torch, or leave it out and run scripts/quickstart, which installs one")
endif()
file(REAL_PATH "${ONERANK_TORCH_DIR}" ONERANK_TORCH_DIR)

add_library(onerank_torch INTERFACE)
add_library(onerank::torch ALIAS onerank_torch)
# After the system's headers: the wheel carries some of its own, such as another version of fmt.
target_compile_options(onerank_torch INTERFACE
  "-fmacro-prefix-map=${ONERANK_TORCH_DIR}/="
  "SHELL:-idirafter ${ONERANK_TORCH_DIR}/include"
  "SHELL:-idirafter ${ONERANK_TORCH_DIR}/include/torch/csrc/api/include")
# NDEBUG always: class layouts of the release wheel differ without it.
# AT_PER_OPERATOR_HEADERS: headers include the operators they use, a quarter less text each.
target_compile_definitions(onerank_torch INTERFACE NDEBUG AT_PER_OPERATOR_HEADERS)
target_compile_options(onerank_torch INTERFACE -Wno-deprecated-declarations)
if(ONERANK_STUBS_ONLY)  # the allocator's header of older torch includes CUDA's
  target_compile_options(onerank_torch INTERFACE "SHELL:-idirafter ${ONERANK_CUDA_INCLUDE_DIR}")
endif()
# libtorch_cpu.so names CUDA libraries that are preloaded (virtual) or found at run time (cuda).
target_link_options(onerank_torch INTERFACE
  -Wl,--allow-shlib-undefined -Wl,--unresolved-symbols=ignore-in-shared-libs)
target_link_libraries(onerank_torch INTERFACE
  "${ONERANK_TORCH_DIR}/lib/libtorch_cpu.so" "${ONERANK_TORCH_DIR}/lib/libc10.so")

# Its version, "2.11.0+cu130".
file(STRINGS "${ONERANK_TORCH_DIR}/version.py" torch_version_line REGEX "^__version__")
string(REGEX REPLACE "^__version__ = '(.*)'$" "\\1" ONERANK_TORCH_VERSION "${torch_version_line}")

onerank_precompiled(onerank_torch_headers
  LINKS onerank::torch
  HEADERS
    <ATen/TensorOperators.h>
    <ATen/core/Tensor.h>
    <ATen/core/ivalue.h>
    <ATen/ops/empty.h>
    <ATen/record_function.h>
    <torch/csrc/autograd/custom_function.h>
    <torch/csrc/autograd/variable.h>)
