// One kernel of the plan's framework, for which the shard runs several of PyTorch's operators.
//
// What these operators compute, allocate and free is what the kernel does, but they read and write
// more memory than it, and take longer. So none of the operators in the scope is recorded. The
// kernel is recorded in their place: its name, and the tensors that it reads and writes.
#pragma once

#include <initializer_list>

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

namespace models {

/// Scopes nest; the outermost one is recorded. A scope that never tells what it moves is not
/// recorded at all, and neither are its operators.
class KernelScope {
 public:
  /// `name` has the library of the kernel: "te::moe_permute". If it is null, no kernel stands for
  /// the operators, and they are recorded.
  explicit KernelScope(const char* name);
  /// To be called once. A tensor that is updated in place stands in both lists; an undefined one
  /// counts nothing.
  void moves(at::TensorList reads, at::TensorList writes);

 private:
  at::RecordFunction watch_{at::RecordScope::USER_SCOPE};
  bool is_named_;
};

/// Runs `run`, which returns what the kernel writes: a tensor, or several.
template <class Run>
auto as_kernel(const char* name, at::TensorList reads, const Run& run) {
  KernelScope kernel(name);
  auto written = run();
  kernel.moves(reads, written);
  return written;
}

/// PyTorch's deterministic algorithms fill tensors made by at::empty. Some kernels of frameworks
/// write into such a tensor, while the operator that stands for the kernel here makes its output
/// itself, which is not filled. So, if deterministic algorithms fill new tensors, this makes
/// tensors like the outputs of the next operator, which fills them, and frees them, so that the
/// operator gets their memory. Else it does nothing.
void fill_outputs(std::initializer_list<at::IntArrayRef> shapes, const at::TensorOptions& options);

}  // namespace models
