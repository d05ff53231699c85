#include "models/experts/stacked_experts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_grouped_mm.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/floor_divide.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/vstack.h>
#include <c10/core/GradMode.h>
#include <c10/util/accumulate.h>
#include <fmt/format.h>

#include <algorithm>

#include "models/layers/activation.h"
#include "models/shard/kernel_scope.h"

namespace models {
namespace {

/// TOKEN_GROUP_ALIGN_SIZE_M in torchtitan/models/moe/utils.py, of bf16.
constexpr int64_t kTokenAlignment = 8;
constexpr int64_t kDown = -1;

int64_t aligned(int64_t rows) {
  return (rows + kTokenAlignment - 1) / kTokenAlignment * kTokenAlignment;
}

/// Matrices [experts, outputs, inputs], applied to rows by groups that end at `ends`, in bf16.
at::Tensor product(const at::Tensor& rows, const Parameter& weight, const at::Tensor& ends) {
  return at::_grouped_mm(
      rows.to(at::kBFloat16), weight.value.to(at::kBFloat16).transpose(-2, -1), ends);
}

}  // namespace

std::vector<int32_t> padded_places(const std::vector<int64_t>& rows_of, int64_t experts) {
  const int64_t rows = c10::sum_integers(rows_of);
  std::vector<int32_t> places(aligned(rows + experts * kTokenAlignment), -1);
  int64_t place = 0;
  for (int64_t expert = 0; expert < experts; ++expert) {
    const int64_t begin = place;
    int64_t row = 0;
    for (std::size_t group = 0; group < rows_of.size(); row += rows_of[group++]) {
      if (static_cast<int64_t>(group) % experts != expert) continue;
      for (int64_t i = 0; i < rows_of[group]; ++i) places[place++] = static_cast<int32_t>(row + i);
    }
    place = begin + aligned(std::max(place - begin, kTokenAlignment));
  }
  return places;
}

/// On the CPU the matrices have the values of those that other frameworks keep for each expert: a
/// first layer of gate and up, and a second one.
const Parameter& StackedExperts::add(ParameterStore& store,
                                     const std::string& name,
                                     int64_t half) const {
  const estimator::ModelConfig& model = context_.plan.model;
  const bool down = half == kDown;
  const int64_t h = model.hidden_size, width = model.moe_ffn_hidden_size;
  ParameterSpec spec{
      .name = fmt::format("{}.experts.{}", name, down ? "w2" : (half == 0 ? "w1" : "w3")),
      .full_shape = {model.num_experts, down ? h : width, down ? width : h},
      .sharded_dim = 0,
      .expert = true};
  for (int64_t expert = 0; expert < model.num_experts; ++expert) {
    spec.stacked.push_back(
        {.name = fmt::format("{}.experts.{}.linear_fc{}.weight", name, expert, down ? 2 : 1),
         .parts = down ? 1 : 2,
         .first = down ? 0 : half});
  }
  return store.add(spec);
}

StackedExperts::StackedExperts(ShardContext& context,
                               ParameterStore& store,
                               const std::string& name,
                               const std::vector<int64_t>& rows_of)
    : context_(context),
      gate_(add(store, name, 0)),
      down_(add(store, name, kDown)),
      up_(add(store, name, 1)) {
  const std::vector<int32_t> places = padded_places(rows_of, context.plan.experts_of_rank());
  padded_rows_ = static_cast<int64_t>(places.size());
  if (context.device_computes) places_ = at::tensor(places, at::kInt).to(context.device);
}

/// generate_permute_indices in torchtitan/models/moe/kernels.py, whose last step is a kernel.
StackedExperts::Padding StackedExperts::pad(const at::Tensor& counts) const {
  const c10::NoGradGuard no_grad;
  const at::Tensor starts = at::cumsum(counts, 0) - counts;
  const at::Tensor total =
      at::clamp_min(counts.view({-1, context_.plan.experts_of_rank()}).sum(0), kTokenAlignment);
  const at::Tensor sizes =
      (at::floor_divide(total + kTokenAlignment - 1, kTokenAlignment) * kTokenAlignment)
          .to(at::kInt);
  const at::Tensor ends = at::cumsum(sizes, 0);
  const at::Tensor places_of_experts = ends - sizes;
  const at::Tensor places = at::full({padded_rows_}, -1, counts.options().dtype(at::kInt));
  as_kernel("torchtitan::fill_indices", {counts, starts, places_of_experts}, [&] {
    if (places_.defined()) places.copy_(places_);
    return at::Tensor(places);
  });
  ends.to(at::kInt);
  return {.places = places, .sizes = sizes};
}

at::Tensor StackedExperts::run(const at::Tensor& rows, const at::Tensor& sizes) const {
  const at::Tensor ends = at::cumsum(sizes, 0, at::kInt);
  at::Tensor hidden = activate_gate(product(rows, gate_, ends), context_.plan.model.activation);
  hidden = hidden * product(rows, up_, ends);
  return product(hidden, down_, ends).to(rows.scalar_type());
}

at::Tensor StackedExperts::forward(const at::Tensor& rows, const at::Tensor& counts) const {
  const ModuleScope scope(context_.observer, "experts");
  const Padding padding = pad(counts);
  if (context_.experts_are_unit()) last_places_ = padding.places;
  std::vector<int64_t> shape = rows.sizes().vec();
  ++shape[0];  // a row of zeros, which padding is copied from and to
  const at::Tensor padded =
      at::index(at::vstack({rows, rows.new_zeros({rows.size(1)})}), {padding.places});
  const at::Tensor output = run(padded, padding.sizes);
  at::Tensor unpadded = output.new_empty(shape);
  unpadded.index_put_({padding.places}, output);
  return unpadded.narrow(0, 0, rows.size(0));
}

}  // namespace models
