#include "models/shard/quantized_parameter.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "models/shard/kernel_scope.h"
#include "models/shard/unbacked_tensor.h"

namespace models {
namespace {

using estimator::MemoryCategory;

/// One number for each parameter: its largest element, of all ranks.
at::Tensor largest_elements(const std::vector<const Parameter*>& parameters,
                            const std::vector<NewWeights>& parts,
                            const std::vector<at::Tensor>& values,
                            const std::shared_ptr<Communicator>& group) {
  const QuantizedParameter& first = *parameters.front()->quantized;
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

const Quantized& QuantizedWeight::of(const Parameter& weight,
                                     int64_t iteration,
                                     const QuantizedProducts& products,
                                     Observer& observer,
                                     WeightUse use) {
  if (weight.quantized) return weight.quantized->held;
  const auto last = [&](const std::vector<at::Tensor>& tensors) {
    for (const at::Tensor& tensor : tensors) {
      observer.memory_lasts(tensor, {MemoryCategory::kWorkspace, "fp8_weight", weight.name});
    }
  };
  const bool late = products.makes_columns_late();
  if (iteration_ != iteration) {
    renew(weight, products, use != WeightUse::kForwardAlone || !late);
    if (iteration_ < 0) last(copy_.tensors());
    iteration_ = iteration;
  }
  if (!late || use != WeightUse::kBackward || copy_.by_columns.defined()) return copy_;
  products.make_columns_of_squares(copy_);
  last({copy_.by_columns, copy_.scale_of_columns});
  return copy_;
}

void QuantizedWeight::renew(const Parameter& weight,
                            const QuantizedProducts& products,
                            bool has_columns) {
  if (iteration_ < 0) {
    copy_ = products.quantize(
        weight.value, QuantizedRole::kWeight, {.columns = has_columns, .waits = true});
    return;
  }
  if (!has_columns) {
    copy_.by_columns.reset();
    copy_.scale_of_columns.reset();
  }
  products.quantize_into(copy_, weight.value);
}

void hold_quantized(Parameter& parameter, const QuantizedProducts& products, Observer& observer) {
  const c10::NoGradGuard no_grad;
  parameter.quantized = std::make_shared<QuantizedParameter>(QuantizedParameter{
      products, products.quantize(parameter.value, QuantizedRole::kWeight, {.waits = true})});
  take_memory(parameter.value);
  const Quantized& held = parameter.quantized->held;
  for (const at::Tensor& tensor : held.tensors()) {
    const bool is_value = tensor.is_same(held.by_rows);
    observer.memory_lasts(tensor,
                          {is_value ? MemoryCategory::kParameter : MemoryCategory::kWorkspace,
                           is_value ? "" : "fp8_weight",
                           parameter.name});
  }
}

namespace {

std::vector<at::Tensor> in_16_bits(const std::vector<NewWeights>& parts) {
  std::vector<at::Tensor> values;
  values.reserve(parts.size());
  for (const NewWeights& part : parts) {
    values.push_back(part.values.to(part.parameter->value.scalar_type()));
  }
  return values;
}

/// Of a scale for each square: the squares of all parameters, one after the other.
class Squares {
 public:
  explicit Squares(const std::vector<const Parameter*>& parameters) : parameters_(parameters) {
    int64_t count = 0;
    for (const Parameter* parameter : parameters) {
      begins_.push_back(count);
      count += c10::multiply_integers(products().squares_of(parameter->quantized->held));
    }
    const auto options = parameters.front()->quantized->held.largest_of_rows.options();
    largest_ = at::zeros({count}, options);
    scales_ = at::zeros({count}, options);
    of_all_ = at::zeros({static_cast<int64_t>(parameters.size())}, options);
  }

  void measure(const std::vector<NewWeights>& parts, const std::vector<at::Tensor>& values) {
    KernelScope kernel("te::nvfp4_partial_amax");
    for (std::size_t i = 0; products().computes() && i < parts.size(); ++i) {
      const auto place = std::find(parameters_.begin(), parameters_.end(), parts[i].parameter);
      const auto number = static_cast<std::size_t>(place - parameters_.begin());
      const at::Tensor found = products().measure_squares(
          parts[i].parameter->quantized->held, parts[i].weights, values[i]);
      of(largest_, number, found.numel()).copy_(found.flatten());
      of_all_.narrow(0, static_cast<int64_t>(number), 1).fill_(found.amax());
    }
    kernel.moves(values, {largest_, of_all_});
  }

  void agree(Communicator& group) {
    group.all_reduce_max(largest_);
    group.all_reduce_max(of_all_);
  }

  void set_scales() const {
    const at::Tensor of_all_scales =
        as_kernel("te::nvfp4_global_scale", {of_all_}, [&] { return at::empty_like(of_all_); });
    KernelScope kernel("te::nvfp4_fused_scale");
    std::vector<at::Tensor> written{scales_};
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const Quantized& held = parameters_[i]->quantized->held;
      const int64_t count = c10::multiply_integers(products().squares_of(held));
      products().set_squares(
          held, of(largest_, i, count), of_all_.narrow(0, static_cast<int64_t>(i), 1));
      written.insert(written.end(), {held.scale_of_rows, held.largest_of_rows});
    }
    kernel.moves({largest_, of_all_}, written);
  }

  void write(const std::vector<NewWeights>& parts, const std::vector<at::Tensor>& values) const {
    KernelScope kernel("te::nvfp4_2d_partial_cast");
    std::vector<at::Tensor> written;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      products().write_squares(parts[i].parameter->quantized->held, parts[i].weights, values[i]);
      written.push_back(parts[i].weights);
    }
    kernel.moves(values, written);
  }

 private:
  const QuantizedProducts& products() const { return parameters_.front()->quantized->products; }
  at::Tensor of(const at::Tensor& all, std::size_t parameter, int64_t count) const {
    return all.narrow(0, begins_[parameter], count);
  }

  const std::vector<const Parameter*>& parameters_;
  std::vector<int64_t> begins_;
  at::Tensor largest_, scales_, of_all_;
};

/// _cast_master_weights_to_nvfp4_2d in transformer_engine/pytorch/tensor/utils.py
void quantize_squares(const std::vector<const Parameter*>& parameters,
                      const std::vector<NewWeights>& parts,
                      const std::shared_ptr<Communicator>& group) {
  const std::vector<at::Tensor> values = in_16_bits(parts);
  Squares squares(parameters);
  squares.measure(parts, values);
  if (group) squares.agree(*group);
  squares.set_scales();
  squares.write(parts, values);
}

}  // namespace

/// With scales from earlier iterations the ranks agree after they have quantized.
void quantize_parts(const std::vector<const Parameter*>& parameters,
                    const std::vector<NewWeights>& parts,
                    const std::shared_ptr<Communicator>& group) {
  if (parameters.empty()) return;
  const QuantizedProducts& products = parameters.front()->quantized->products;
  if (products.has_squares()) return quantize_squares(parameters, parts, group);
  const std::vector<at::Tensor> values = in_16_bits(parts);
  const at::Tensor largest =
      products.measures() ? largest_elements(parameters, parts, values, group) : at::Tensor();
  for (std::size_t i = 0; largest.defined() && i < parameters.size(); ++i) {
    products.set_scale(parameters[i]->quantized->held,
                       largest.narrow(0, static_cast<int64_t>(i), 1));
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    products.write_part(parts[i].parameter->quantized->held, parts[i].weights, values[i]);
  }
  if (!largest.defined()) largest_elements(parameters, parts, values, group);
}

}  // namespace models
