#include "sim/exec/count_reads.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace sim {
namespace {

constexpr std::string_view kCopy = "aten::copy_";
constexpr std::string_view kSizedByValues[] = {"aten::nonzero",
                                               "aten::masked_select",
                                               "aten::repeat_interleave",
                                               "aten::_unique2",
                                               "aten::unique_dim",
                                               "aten::unique_consecutive"};

}  // namespace

bool reads_counts(const at::RecordFunction& function) {
  const auto inputs = function.inputs();
  if (kCopy != function.name() || inputs.size() < 2) return false;
  if (!inputs[0].isTensor() || !inputs[1].isTensor()) return false;
  const at::Tensor& source = inputs[1].toTensor();
  return inputs[0].toTensor().is_cpu() && source.is_cuda() && source.numel() > 1 &&
         c10::isIntegralType(source.scalar_type(), /*includeBool=*/false) &&
         source.itemsize() >= 4;  // bytes are masks and pickles
}

bool is_sized_by_values(const std::vector<const char*>& running_operators) {
  return std::any_of(running_operators.begin(), running_operators.end(), [](const char* name) {
    return std::find(std::begin(kSizedByValues), std::end(kSizedByValues), name) !=
           std::end(kSizedByValues);
  });
}

}  // namespace sim
