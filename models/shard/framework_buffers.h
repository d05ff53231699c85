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

class FrameworkBuffers {
 public:
  FrameworkBuffers(Observer& observer, bool has_tuned_kernels)
      : observer_(observer), has_tuned_kernels_(has_tuned_kernels) {}

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

  /// At the first call of a kernel, Triton's autotuner tries the kernel's configurations. It
  /// allocates a tensor of 256 MiB, which it clears between the tries, and a copy of the tensor
  /// that the kernel changes in place (`restored`, may be undefined), with which each try begins
  /// (do_bench in triton/testing.py, Autotuner in triton/runtime/autotuner.py). `call` is the
  /// autotuner's key: the kernel's name and which of its tensors are given. Does nothing if the
  /// framework has no such kernels.
  void tune_at_first_call(const std::string& call,
                          const at::Device& device,
                          const at::Tensor& restored = {});

 private:
  at::Tensor make_workspace(const estimator::Plan& plan, const at::Device& device);

  Observer& observer_;
  bool has_tuned_kernels_;
  std::map<std::string, at::Tensor> global_memory_;  ///< by key
  at::Tensor causal_mask_;
  at::Tensor transformer_engine_workspace_;
  std::vector<at::Tensor> grouped_product_workspaces_;
  std::set<std::string> tuned_;
};

/// Bytes of that workspace: 32 MiB and 1 KiB from compute capability 9 on, else 4 MiB
/// (get_cublas_workspace_size_bytes).
int64_t transformer_engine_workspace_bytes(const estimator::Plan& plan);

}  // namespace models
