#include "sim/exec/values/written_memory.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/operator_name.h>

#include <algorithm>
#include <iterator>

#include "sim/exec/values/count_reads.h"
#include "sim/tracking/operator_traits.h"

namespace sim {
namespace {

constexpr std::string_view kCopyOrFill[] = {
    "aten::fill_", "aten::zero_", "aten::copy_", "aten::_foreach_copy_", "aten::_foreach_zero_"};
/// The stub of NCCL knows what these leave; their schemas do not tell that they return arguments.
constexpr std::string_view kCollectives = "c10d::";

}  // namespace

bool is_copy_or_fill(std::string_view name) {
  return std::find(std::begin(kCopyOrFill), std::end(kCopyOrFill), name) != std::end(kCopyOrFill);
}

MemoryRange memory_of(const at::Tensor& tensor) {
  constexpr MemoryRange kNone{nullptr, 0};
  if (!tensor.has_storage() || tensor.key_set().has(c10::DispatchKey::Python)) return kNone;
  auto* const base = static_cast<char*>(
      tensor.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get());
  if (base == nullptr || tensor.numel() == 0) return kNone;
  int64_t last = 0;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    last += (tensor.size(dim) - 1) * tensor.stride(dim);
  }
  const auto item_bytes = static_cast<int64_t>(tensor.itemsize());
  return {base + tensor.storage_offset() * item_bytes,
          static_cast<uint64_t>((last + 1) * item_bytes)};
}

OperatorWrites writes_of(const at::RecordFunction& function) {
  OperatorWrites writes;
  const auto schema = function.operator_schema();
  const auto name = function.operator_name();
  if (!schema || !name) return writes;
  const OperatorTraits traits = traits_of(*name, c10::DeviceType::CUDA);
  // resize_ and the like change what a tensor is, not what its memory holds.
  if (traits.moves_no_data) return writes;
  writes.computes =
      traits.is_kernel && !is_copy_or_fill(traits.name) && !traits.name.starts_with(kCollectives);
  writes.is_closed = writes.computes && traits.name.starts_with("aten::") && !reads_back(*name);
  for (size_t i = 0; i < schema->arguments().size(); ++i) {
    const auto* alias = schema->arguments()[i].alias_info();
    if (alias != nullptr && alias->isWrite()) writes.arguments.push_back(i);
  }
  for (size_t i = 0; i < schema->returns().size(); ++i) {
    if (schema->returns()[i].alias_info() == nullptr) writes.results.push_back(i);
  }
  return writes;
}

}  // namespace sim
