#include "comm_stub/checks.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace comm_stub {
namespace {

/// The types that ProcessGroupNCCL has an ncclDataType_t for.
constexpr std::array kNcclTypes = {at::kChar,
                                   at::kByte,
                                   at::kFloat,
                                   at::kDouble,
                                   at::kInt,
                                   at::kLong,
                                   at::kHalf,
                                   at::kBool,
                                   at::kBFloat16,
                                   at::kFloat8_e5m2,
                                   at::kFloat8_e4m3fn,
                                   at::kFloat8_e4m3fnuz,
                                   at::kFloat8_e5m2fnuz};

bool has_nccl_type(const at::Tensor& tensor) {
  return std::find(kNcclTypes.begin(), kNcclTypes.end(), tensor.scalar_type()) != kNcclTypes.end();
}

std::string shape_of(const at::Tensor& tensor) {
  return c10::str("sizes ", tensor.sizes(), " with strides ", tensor.strides());
}

}  // namespace

void Checks::fail(const std::string& why) const {
  C10_THROW_ERROR(ValueError,
                  fmt::format("{} over the {} group ({} ranks): {}",
                              call_,
                              estimator::to_string(group_.kind),
                              group_size_,
                              why));
}

void Checks::count(size_t found, int64_t wanted, const char* role) const {
  if (found != static_cast<size_t>(wanted)) refuse("expected {} {}, got {}", wanted, role, found);
}

const at::Tensor& Checks::only(const Tensors& tensors) const {
  count(tensors.size(), 1, "tensor");
  return tensors.front();
}

const Tensors& Checks::only(const std::vector<Tensors>& lists) const {
  count(lists.size(), 1, "list of tensors");
  return lists.front();
}

void Checks::dense(const at::Tensor& tensor) const {
  if (!tensor.defined()) refuse("a tensor is undefined");
  if (tensor.layout() != at::kStrided) {
    refuse("tensors must be dense, got {}", c10::str(tensor.layout()));
  }
  if (!has_nccl_type(tensor)) {
    refuse("dtype {} is not supported by NCCL{}",
           c10::toString(tensor.scalar_type()),
           tensor.is_complex() ? "; give the tensor as view_as_real()" : "");
  }
}

void Checks::contiguous(const at::Tensor& tensor) const {
  dense(tensor);
  if (!tensor.is_contiguous(tensor.suggest_memory_format())) {
    refuse("tensors must be contiguous, got {}", shape_of(tensor));
  }
}

void Checks::in_one_piece(const at::Tensor& tensor) const {
  dense(tensor);
  if (!tensor.is_non_overlapping_and_dense()) {
    refuse("tensors must be non-overlapping and dense, got {}", shape_of(tensor));
  }
}

void Checks::each_in_one_piece(const Tensors& tensors) const {
  if (tensors.empty()) refuse("the list of tensors is empty");
  for (const at::Tensor& tensor : tensors) in_one_piece(tensor);
}

void Checks::in_one_piece(const Tensors& tensors) const {
  each_in_one_piece(tensors);
  for (const at::Tensor& tensor : tensors) same_dtype_and_device(tensors.front(), tensor);
}

void Checks::same_dtype_and_device(const at::Tensor& a, const at::Tensor& b) const {
  if (a.scalar_type() != b.scalar_type()) {
    refuse("tensors must have one dtype, got {} and {}",
           c10::toString(a.scalar_type()),
           c10::toString(b.scalar_type()));
  }
  if (a.device() != b.device()) {
    refuse("tensors must be on one device, got {} and {}", a.device().str(), b.device().str());
  }
}

void Checks::alike(const at::Tensor& a, const at::Tensor& b) const {
  same_dtype_and_device(a, b);
  if (a.sizes() != b.sizes()) {
    refuse("tensors must have one shape, got {} and {}", c10::str(a.sizes()), c10::str(b.sizes()));
  }
}

void Checks::entries(const Tensors& list, const at::Tensor& own, int64_t member_index) const {
  one_for_each_member(list.size(), "entries");
  const bool may_have_gaps = have_one_shape(list);
  for (const at::Tensor& entry : list) {
    may_have_gaps ? dense(entry) : contiguous(entry);
    same_dtype_and_device(entry, own);
  }
  const int64_t found = list[static_cast<size_t>(member_index)].numel();
  if (found != own.numel()) {
    refuse("entry {} must have {} elements, got {}", member_index, own.numel(), found);
  }
}

void Checks::one_for_each_member(size_t found, const char* role) const {
  count(found, group_size_, role);
}

void Checks::one_output_for_each_input(size_t outputs, size_t inputs) const {
  count(outputs, static_cast<int64_t>(inputs), "outputs, one for each input");
}

void Checks::gathered(const at::Tensor& whole, const at::Tensor& shard) const {
  if (whole.numel() != group_size_ * shard.numel()) {
    refuse("the gathered tensor must have {} x {} elements, got {}",
           group_size_,
           shard.numel(),
           whole.numel());
  }
}

void Checks::splits(const at::Tensor& tensor, const std::vector<int64_t>& split_sizes) const {
  if (tensor.dim() == 0) refuse("a tensor without dimensions cannot be split");
  const int64_t rows = tensor.size(0);
  if (split_sizes.empty()) {
    if (rows % group_size_ != 0) refuse("{} rows do not split evenly", rows);
    return;
  }
  one_for_each_member(split_sizes.size(), "split sizes");
  const int64_t sum = std::accumulate(split_sizes.begin(), split_sizes.end(), int64_t{0});
  if (sum != rows) refuse("split sizes add up to {}, the tensor has {} rows", sum, rows);
  const int64_t least = *std::min_element(split_sizes.begin(), split_sizes.end());
  if (least < 0) refuse("split size {} is negative", least);
}

void Checks::member(int64_t index, const char* role) const {
  if (index < 0 || index >= group_size_) {
    refuse("{} {} is not in [0, {})", role, index, group_size_);
  }
}

void Checks::only_on_cpu(const at::Tensor& tensor) const {
  if (!tensor.is_cpu()) refuse("NCCL does not support this call");
}

bool have_one_shape(const Tensors& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& tensor) {
    return tensor.defined() && tensor.sizes() == tensors.front().sizes();
  });
}

}  // namespace comm_stub
