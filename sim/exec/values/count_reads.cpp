#include "sim/exec/values/count_reads.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

namespace sim {
namespace {

constexpr std::string_view kCopy = "aten::copy_";
constexpr std::string_view kSizedByValues[] = {"aten::nonzero",
                                               "aten::masked_select",
                                               "aten::repeat_interleave",
                                               "aten::_unique2",
                                               "aten::unique_dim",
                                               "aten::unique_consecutive"};

/// Namespaces of PyTorch's operators.
constexpr std::string_view kOwn[] = {"aten::",
                                     "prim::",
                                     "prims::",
                                     "c10d::",
                                     "c10d_functional::",
                                     "_c10d_functional::",
                                     "_c10d_functional_autograd::",
                                     "symm_mem::",
                                     "fsdp::",
                                     "inductor::",
                                     "profiler::",
                                     "quantized::"};

/// Flags are truth values, and bytes masks and pickles.
bool is_count(const at::Tensor& tensor) {
  return c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/false) && tensor.itemsize() >= 4;
}

}  // namespace

bool is_copy(std::string_view operator_name) { return operator_name == kCopy; }

bool reads_counts(const at::RecordFunction& copy) {
  const auto inputs = copy.inputs();
  if (inputs.size() < 2) return false;
  if (!inputs[0].isTensor() || !inputs[1].isTensor()) return false;
  const at::Tensor& source = inputs[1].toTensor();
  return inputs[0].toTensor().is_cpu() && source.is_cuda() && source.numel() > 1 &&
         is_count(source);
}

bool is_of_extension(const c10::OperatorName& op) {
  return std::none_of(std::begin(kOwn), std::end(kOwn), [&](std::string_view own) {
    return op.name.starts_with(own);
  });
}

bool reads_number(std::string_view operator_name) {
  return operator_name == "aten::_local_scalar_dense";
}

bool reads_count(const at::RecordFunction& read) {
  const auto inputs = read.inputs();
  return !inputs.empty() && inputs[0].isTensor() && is_count(inputs[0].toTensor());
}

bool reads_back(const c10::OperatorName& op) {
  const auto found = c10::Dispatcher::singleton().findSchema(op);
  return found && (found->hasTag(at::Tag::dynamic_output_shape) ||
                   found->hasTag(at::Tag::data_dependent_output));
}

bool is_sized_by_values(std::string_view operator_name) {
  return std::find(std::begin(kSizedByValues), std::end(kSizedByValues), operator_name) !=
         std::end(kSizedByValues);
}

std::string counted_tensor_text(const at::RecordFunction& function) {
  std::string text;
  for (const c10::IValue& input : function.inputs()) {
    if (!input.isTensor() || !input.toTensor().defined()) continue;
    const at::Tensor& tensor = input.toTensor();  // the last: a copy's source, a selection's mask
    text = fmt::format(
        "a {} tensor [{}]", c10::toString(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "));
  }
  return text;
}

}  // namespace sim
