#include "sim/exec/written_memory.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/operator_name.h>

#include <unordered_map>

#include "sim/tracking/operator_traits.h"

namespace sim {
namespace {

std::vector<size_t> written_arguments(const at::RecordFunction& function) {
  std::vector<size_t> indices;
  const auto schema = function.operator_schema();
  const auto name = function.operator_name();
  if (!schema || !name) return indices;
  // resize_ and the like change what a tensor is, not what its memory holds.
  if (traits_of(*name, c10::DeviceType::CUDA).moves_no_data) return indices;
  for (size_t i = 0; i < schema->arguments().size(); ++i) {
    const auto* alias = schema->arguments()[i].alias_info();
    if (alias != nullptr && alias->isWrite()) indices.push_back(i);
  }
  return indices;
}

void add(const at::Tensor& tensor, std::vector<MemoryRange>& ranges) {
  if (!tensor.defined() || !tensor.is_cuda()) return;
  const MemoryRange range = memory_of(tensor);
  if (range.address != nullptr) ranges.push_back(range);
}

}  // namespace

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

std::vector<MemoryRange> memory_written_by(const at::RecordFunction& function) {
  // An operator's overload name lies in its schema, so its address tells operators apart.
  thread_local std::unordered_map<const char*, std::vector<size_t>> known;
  const auto [found, is_new] = known.try_emplace(function.overload_name());
  if (is_new) found->second = written_arguments(function);
  std::vector<MemoryRange> ranges;
  const auto inputs = function.inputs();
  for (const size_t index : found->second) {
    if (index >= inputs.size()) continue;
    const c10::IValue& input = inputs[index];
    if (input.isTensor()) {
      add(input.toTensor(), ranges);
    } else if (input.isTensorList()) {
      for (const at::Tensor& tensor : input.toTensorVector()) add(tensor, ranges);
    }
  }
  return ranges;
}

}  // namespace sim
