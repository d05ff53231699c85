#include "sim/exec/trace/peer_traffic.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <iterator>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>

#include "estimator/base/contains.h"
#include "sim/virtual_gpu/find_control.h"

namespace sim {
namespace {

/// An operator of a group of n members on a tensor: how many times the tensor's bytes pass a
/// member's link.
struct SymmetricOperator {
  std::string_view name;
  size_t tensor;  ///< the argument that has these bytes
  size_t group;   ///< the argument with the group's name
  double (*times)(double n);
};

/// Each member reads the whole tensor of every other one.
double read_all(double n) { return n - 1; }
/// Each member reads its part of the others' tensors.
double read_part(double n) { return (n - 1) / n; }
/// Each member reads its part of the others' tensors, and all get the sum.
double read_and_spread(double n) { return 2 * (n - 1) / n; }
/// The switch reads a member's tensor for every member.
double reduce_for_all(double n) { return n; }
/// The switch reads a member's tensor once, and gives it a part of the sum.
double reduce_and_multicast(double n) { return 1 + 1 / n; }
double reduce_for_one(double) { return 1; }
/// A member receives the shards of all, its own too.
double multicast(double n) { return n; }

constexpr SymmetricOperator kSymmetricOperators[] = {
    {"symm_mem::one_shot_all_reduce", 0, 2, read_all},
    {"symm_mem::one_shot_all_reduce_out", 0, 2, read_all},
    {"symm_mem::one_shot_all_reduce_copy", 1, 3, read_all},
    {"symm_mem::one_shot_all_reduce_copy_out", 1, 3, read_all},
    {"symm_mem::two_shot_all_reduce_", 0, 2, read_and_spread},
    {"symm_mem::two_shot_all_reduce_out", 0, 2, read_and_spread},
    {"symm_mem::reduce_scatter_out", 0, 1, read_part},
    {"symm_mem::multimem_all_reduce_", 0, 2, reduce_and_multicast},
    {"symm_mem::multimem_one_shot_all_reduce", 0, 2, reduce_for_all},
    {"symm_mem::multimem_one_shot_all_reduce_out", 0, 2, reduce_for_all},
    {"symm_mem::multimem_one_shot_reduce_out", 0, 3, reduce_for_one},
    {"symm_mem::multimem_all_gather_out", 0, 1, multicast},
};

int64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<int64_t>(static_cast<size_t>(tensor.numel()) * tensor.element_size());
}

int64_t bytes_of_algorithm(const SymmetricOperator& op, const at::RecordFunction& begun) {
  const auto inputs = begun.inputs();
  if (inputs.size() <= op.group || !inputs[op.tensor].isTensor()) return 0;
  const auto group = c10d::resolve_process_group(inputs[op.group].toStringRef());
  const auto bytes = static_cast<double>(bytes_of(inputs[op.tensor].toTensor()));
  return static_cast<int64_t>(bytes * op.times(group->getSize()));
}

bool is_of_others(const at::Tensor& tensor) {
  static auto* const is_mapped = ONERANK_FIND_CONTROL(onerank_virtual_gpu_is_of_others);
  return is_mapped != nullptr && tensor.defined() && tensor.is_cuda() && tensor.has_storage() &&
         is_mapped(tensor.const_data_ptr()) != 0;
}

int64_t mapped_bytes(c10::ArrayRef<c10::IValue> values) {
  int64_t bytes = 0;
  for (const c10::IValue& value : values) {
    if (value.isTensor() && is_of_others(value.toTensor())) bytes += bytes_of(value.toTensor());
  }
  return bytes;
}

std::string_view last_name(std::string_view kernel) {
  kernel = kernel.substr(0, kernel.find('<'));
  return kernel.substr(kernel.rfind(':') + 1);
}

}  // namespace

int64_t peer_bytes(const at::RecordFunction& begun) {
  const auto op = std::find_if(std::begin(kSymmetricOperators),
                               std::end(kSymmetricOperators),
                               [&](const auto& known) { return known.name == begun.name(); });
  if (op != std::end(kSymmetricOperators)) return bytes_of_algorithm(*op, begun);
  return mapped_bytes(begun.inputs());
}

bool is_signal(std::string_view kernel) {
  constexpr std::string_view kSignals[] = {
      "barrier_kernel", "multimem_barrier_kernel", "put_signal_kernel", "wait_signal_kernel"};
  return estimator::contains(kSignals, last_name(kernel));
}

bool is_pause(std::string_view kernel) { return last_name(kernel) == "spin_kernel"; }

}  // namespace sim
