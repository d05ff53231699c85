#include "models/shard/eight_bit_parameter.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "models/shard/unbacked_tensor.h"

namespace models {
namespace {

using estimator::MemoryCategory;

/// One number for each parameter: its largest element, of all ranks.
at::Tensor largest_elements(const std::vector<const Parameter*>& parameters,
                            const std::vector<NewWeights>& parts,
                            const std::vector<at::Tensor>& values,
                            const std::shared_ptr<Communicator>& group) {
  const EightBitParameter& first = *parameters.front()->eight_bits;
  at::Tensor largest =
      at::zeros({static_cast<int64_t>(parameters.size())}, first.held.scale_of_rows.options());
  if (first.products.measures()) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto place = std::find(parameters.begin(), parameters.end(), parts[i].parameter);
      first.products.measure(values[i], largest.narrow(0, place - parameters.begin(), 1));
    }
  }
  if (group) group->all_reduce_max(largest);
  return largest;
}

}  // namespace

const EightBits& EightBitWeight::of(const Parameter& weight,
                                    int64_t iteration,
                                    const EightBitProducts& products,
                                    Observer& observer) {
  if (weight.eight_bits) return weight.eight_bits->held;
  if (iteration_ == iteration) return copy_;
  if (iteration_ >= 0) {
    products.quantize_into(copy_, weight.value);
  } else {
    copy_ = products.quantize(weight.value, products.type(), {.waits = true});
    for (const at::Tensor& tensor : copy_.tensors()) {
      observer.memory_lasts(tensor, {MemoryCategory::kWorkspace, "fp8_weight", weight.name});
    }
  }
  iteration_ = iteration;
  return copy_;
}

void hold_in_eight_bits(Parameter& parameter,
                        const EightBitProducts& products,
                        Observer& observer) {
  const c10::NoGradGuard no_grad;
  parameter.eight_bits = std::make_shared<EightBitParameter>(EightBitParameter{
      products, products.quantize(parameter.value, products.type(), {.waits = true})});
  take_memory(parameter.value);
  const EightBits& held = parameter.eight_bits->held;
  for (const at::Tensor& tensor : held.tensors()) {
    const bool is_value = tensor.is_same(held.by_rows);
    observer.memory_lasts(tensor,
                          {is_value ? MemoryCategory::kParameter : MemoryCategory::kWorkspace,
                           is_value ? "" : "fp8_weight",
                           parameter.name});
  }
}

/// With scales from earlier iterations the ranks agree after they have quantized.
void quantize_parts(const std::vector<const Parameter*>& parameters,
                    const std::vector<NewWeights>& parts,
                    const std::shared_ptr<Communicator>& group) {
  if (parameters.empty()) return;
  const EightBitProducts& products = parameters.front()->eight_bits->products;
  std::vector<at::Tensor> values;
  values.reserve(parts.size());
  for (const NewWeights& part : parts) {
    values.push_back(part.values.to(part.parameter->value.scalar_type()));
  }
  const at::Tensor largest =
      products.measures() ? largest_elements(parameters, parts, values, group) : at::Tensor();
  for (std::size_t i = 0; largest.defined() && i < parameters.size(); ++i) {
    products.set_scale(parameters[i]->eight_bits->held,
                       largest.narrow(0, static_cast<int64_t>(i), 1));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    products.write_part(parts[i].parameter->eight_bits->held, parts[i].weights, values[i]);
  }
  if (!largest.defined()) largest_elements(parameters, parts, values, group);
}

}  // namespace models
