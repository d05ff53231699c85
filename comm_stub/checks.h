// The checks that ProcessGroupNCCL of torch 2.11 makes before it starts a collective.
#pragma once

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "estimator/plan/parallel_layout.h"

namespace comm_stub {

using Tensors = std::vector<at::Tensor>;

/// The checks of one call. A failed check throws c10::ValueError with a message such as
///     allreduce over the data group (128 ranks): WHY
/// The object refers to the group, so it must not outlive the call.
class Checks {
 public:
  /// `call` is the name of the function of c10d::Backend.
  Checks(const char* call, const estimator::RankGroup& group)
      : call_(call), group_(group), group_size_(group.size()) {}

  /// The one element of the list. It must have exactly one, since ProcessGroupNCCL drives one
  /// device.
  const at::Tensor& only(const Tensors& tensors) const;
  const Tensors& only(const std::vector<Tensors>& lists) const;

  /// The tensor must be dense, contiguous in its own memory format, and of a dtype that NCCL has.
  void contiguous(const at::Tensor& tensor) const;
  /// The tensor must be dense, without gaps or overlaps in memory, and of a dtype that NCCL has.
  void in_one_piece(const at::Tensor& tensor) const;
  /// There must be at least one tensor, and each must be in_one_piece().
  void each_in_one_piece(const Tensors& tensors) const;
  /// Besides, all must have the same dtype and device.
  void in_one_piece(const Tensors& tensors) const;

  void same_dtype_and_device(const at::Tensor& a, const at::Tensor& b) const;
  /// Both must have the same dtype, device and sizes.
  void alike(const at::Tensor& a, const at::Tensor& b) const;
  /// `list` must have an entry for each member, all with the dtype and device of `own`. The entry
  /// of this member must have as many elements as `own`. Entries may have gaps only if all have the
  /// same shape.
  void entries(const Tensors& list, const at::Tensor& own, int64_t member_index) const;

  void one_for_each_member(size_t found, const char* role) const;
  void one_output_for_each_input(size_t outputs, size_t inputs) const;
  /// `whole` must have group size x the elements of `shard`.
  void gathered(const at::Tensor& whole, const at::Tensor& shard) const;
  /// `split_sizes` must cut the tensor's first dimension into one piece for each member. If it is
  /// empty, the pieces are equal.
  void splits(const at::Tensor& tensor, const std::vector<int64_t>& split_sizes) const;

  /// `index` must be a member of the group. `role` is "root", "destination", ...
  void member(int64_t index, const char* role) const;
  /// For calls that NCCL does not have: the tensor must be on the CPU, where the real backend would
  /// be Gloo.
  void only_on_cpu(const at::Tensor& tensor) const;

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> why, Args&&... args) const {
    fail(fmt::format(why, std::forward<Args>(args)...));
  }

 private:
  [[noreturn]] void fail(const std::string& why) const;
  void dense(const at::Tensor& tensor) const;
  void count(size_t found, int64_t wanted, const char* role) const;

  const char* call_;
  const estimator::RankGroup& group_;
  int64_t group_size_;
};

/// Whether all tensors have the same sizes.
bool have_one_shape(const Tensors& tensors);

}  // namespace comm_stub
