// What ProcessGroupNCCL of torch 2.11 checks before it starts a collective.
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

/// The checks of one call. A check that fails throws c10::ValueError:
///     allreduce over the data group (128 ranks): WHY
/// Lives as long as the call: it refers to the group.
class Checks {
 public:
  /// `call` is the name of the function of c10d::Backend.
  Checks(const char* call, const estimator::RankGroup& group)
      : call_(call), group_(group), group_size_(group.size()) {}

  /// What the list holds, which must be one: ProcessGroupNCCL drives one device.
  const at::Tensor& only(const Tensors& tensors) const;
  const Tensors& only(const std::vector<Tensors>& lists) const;

  /// Dense, contiguous in its own memory format, of a dtype that NCCL has.
  void contiguous(const at::Tensor& tensor) const;
  /// Dense, without gaps or overlaps in memory, of a dtype that NCCL has.
  void in_one_piece(const at::Tensor& tensor) const;
  /// At least one, each in_one_piece(), of one dtype and on one device.
  void in_one_piece(const Tensors& tensors) const;

  void same_dtype_and_device(const at::Tensor& a, const at::Tensor& b) const;
  /// Same dtype, device and sizes.
  void alike(const at::Tensor& a, const at::Tensor& b) const;
  /// `list` has an entry for each member, all of `own`'s dtype and device. The entry of this member
  /// has as many elements as `own`. Entries may have gaps only when all have one shape.
  void entries(const Tensors& list, const at::Tensor& own, int64_t member_index) const;

  void one_for_each_member(size_t found, const char* role) const;
  void one_output_for_each_input(size_t outputs, size_t inputs) const;
  /// `whole` has group size x the elements of `shard`.
  void gathered(const at::Tensor& whole, const at::Tensor& shard) const;
  /// The sizes cut the tensor's first dimension into one piece for each member; none: equal pieces.
  void splits(const at::Tensor& tensor, const std::vector<int64_t>& split_sizes) const;

  /// `index` is a member of the group. `role`: "root", "destination", ...
  void member(int64_t index, const char* role) const;
  /// For what NCCL has not: answered on the CPU, whose real backend would be Gloo.
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
