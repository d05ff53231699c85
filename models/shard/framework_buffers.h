// Tensors that a framework allocates at their first use, shares between layers and never frees.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "estimator/plan/plan.h"
#include "models/shard/observer.h"

namespace models {

/// Which kernels are tuned when they are called first. A plan is the first launch of a job:
/// Inductor keeps on disk what it found, Triton does not.
struct TunedKernels {
  bool of_triton = false;     ///< there are kernels that Triton's autotuner tunes
  int64_t cleared_bytes = 0;  ///< that Inductor clears for its kernels; 0: it makes none
};

/// A kernel that Inductor makes of a function under torch.compile.
struct CompiledKernel {
  std::string name;        ///< also of what else it is made anew for: the shape, for example
  at::TensorList changed;  ///< arguments that it changes in place; one tensor may be two of them
  int configurations = 2;  ///< with which it is tried; with one it is not tuned
};

/// Of a pointwise kernel with so many elements: blocks of two sizes, which are the same for few
/// elements (pointwise in torch/_inductor/runtime/triton_heuristics.py of 2.11).
constexpr int pointwise_configurations(int64_t elements) { return elements > 128 ? 2 : 1; }

class FrameworkBuffers {
 public:
  FrameworkBuffers(Observer& observer, const TunedKernels& tuned_kernels)
      : observer_(observer), tuned_kernels_(tuned_kernels) {}

  /// Megatron-LM's GlobalMemoryBuffer (megatron/core/utils.py): one flat tensor for each key, which
  /// is allocated anew when a larger one is needed. The result shares its memory and is valid until
  /// the next call with the same key.
  at::Tensor global_memory(at::IntArrayRef shape,
                           const at::TensorOptions& options,
                           const std::string& key = "mpu");

  /// TransformerEngine's causal mask for scores that its softmax kernel does not support: a copy of
  /// the first mask that is asked for (_get_default_causal_mask in softmax.py).
  const at::Tensor& causal_mask(const at::Tensor& mask);

  /// TransformerEngine's own cuBLAS workspace, in addition to PyTorch's. The process has one, which
  /// is allocated at the first product (get_cublas_workspace in
  /// transformer_engine/pytorch/cpp_extensions/gemm.py).
  void use_transformer_engine_workspace(const estimator::Plan& plan, const at::Device& device);
  /// The workspaces of its grouped products: one for each of the four streams on which they run
  /// (nvte_get_num_compute_streams in transformer_engine/common/util/multi_stream.cpp).
  void use_grouped_product_workspaces(const estimator::Plan& plan, const at::Device& device);
  /// With which inputs and gradients in 4 bits are transformed. A product of PyTorch makes it, in
  /// PyTorch's workspace (get_rht_matrix in transformer_engine/pytorch/tensor/nvfp4_tensor.py).
  void use_hadamard_matrix(const at::Device& device);

  /// At the first call of a kernel, Triton's autotuner tries the kernel's configurations. It
  /// allocates a tensor of 256 MiB, which it clears between the tries, and a copy of the tensor
  /// that the kernel changes in place (`restored`, may be undefined), with which each try begins
  /// (do_bench in triton/testing.py, Autotuner in triton/runtime/autotuner.py). `call` is the
  /// autotuner's key: the kernel's name and which of its tensors are given. Does nothing if the
  /// framework has no such kernels.
  void tune_at_first_call(const std::string& call,
                          const at::Device& device,
                          const at::Tensor& restored = {});

  /// The same of Inductor, for a kernel whose outputs are allocated. Each configuration begins with
  /// copies of the arguments that the kernel changes. They are made for each run, of which the
  /// first comes before the tensor that is cleared, of the size of the L2 cache
  /// (InductorBenchmarker in torch/_inductor/runtime/benchmarking.py of 2.11). An argument whose
  /// copy would raise the peak of allocated memory is copied to the host instead
  /// (CachingAutotuner's copy_args_to_cpu_if_needed in triton_heuristics.py). Here it is the peak
  /// of the running phase.
  void tune_compiled_at_first_call(const CompiledKernel& kernel, const at::Device& device);

 private:
  at::Tensor make_workspace(const estimator::Plan& plan, const at::Device& device);

  Observer& observer_;
  TunedKernels tuned_kernels_;
  std::map<std::string, at::Tensor> global_memory_;  ///< by key
  at::Tensor causal_mask_;
  at::Tensor hadamard_matrix_;
  at::Tensor transformer_engine_workspace_;
  std::vector<at::Tensor> grouped_product_workspaces_;
  std::set<std::string> tuned_;
};

/// Bytes that Inductor clears on the plan's GPU: its L2 cache.
int64_t inductor_cleared_bytes(const estimator::Plan& plan);

/// Bytes of TransformerEngine's workspace: 32 MiB and 1 KiB from compute capability 9 on, else 4
/// MiB (get_cublas_workspace_size_bytes).
int64_t transformer_engine_workspace_bytes(const estimator::Plan& plan);

}  // namespace models
