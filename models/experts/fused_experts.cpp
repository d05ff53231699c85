#include "models/experts/fused_experts.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/accumulate.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/experts/quantized_experts.h"
#include "models/shard/kept_value.h"
#include "models/shard/kernel_scope.h"

namespace models {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

/// Rows [capacity, width] in 8 bits for products that sum along them, and along their columns.
struct Rows {
  at::Tensor values, scales;                ///< [capacity, width], [capacity, width / 32]
  at::Tensor column_values, column_scales;  ///< [capacity, width], [capacity / 32, width]
};

Rows make_rows(int64_t capacity, int64_t width, const at::TensorOptions& options) {
  const auto in_8_bits = options.dtype(at::kFloat8_e4m3fn), bytes = options.dtype(at::kByte);
  return {.values = at::empty({capacity, width}, in_8_bits),
          .scales = at::empty({capacity, width / kScaledTogether}, bytes),
          .column_values = at::empty({capacity, width}, in_8_bits),
          .column_scales = at::empty({capacity / kScaledTogether, width}, bytes)};
}

struct KeptOfExperts {
  FusedExperts experts;
  std::shared_ptr<PagedStash::Layer> layer;

  int64_t rows() const { return c10::sum_integers(experts.rows_of); }
  int64_t count() const { return static_cast<int64_t>(experts.rows_of.size()); }
};

/// The rows that came.
at::Tensor filled(const at::Tensor& tensor, const KeptOfExperts& kept, int64_t block = 1) {
  return tensor.narrow(0, 0, kept.rows() / block);
}
std::vector<at::Tensor> filled_rows(const Rows& rows, const KeptOfExperts& kept) {
  return {filled(rows.values, kept), filled(rows.scales, kept)};
}
std::vector<at::Tensor> filled_both(const Rows& rows, const KeptOfExperts& kept) {
  std::vector<at::Tensor> all = filled_rows(rows, kept);
  all.push_back(filled(rows.column_values, kept));
  all.push_back(filled(rows.column_scales, kept, kScaledTogether));
  return all;
}

/// tex.group_quantize
Rows quantize(const at::Tensor& values, const KeptOfExperts& kept) {
  Rows rows = make_rows(values.size(0), values.size(1), values.options().requires_grad(false));
  KernelScope kernel("te::group_quantize");
  kernel.moves({filled(values, kept)}, filled_both(rows, kept));
  return rows;
}

/// All weights of a layer, for a product with rows from their left: the first one as its right
/// matrix, and what else the product reads of them.
struct Weights {
  at::Tensor matrix, scales;
  std::vector<at::Tensor> rest;
  c10::ScalarType type;  ///< of the layer's results

  int64_t columns() const { return matrix.size(1); }
};

/// swizzle_scales_and_pack_ptrs_for_discrete_weights: scales in the order in which kernels read
/// them, in one allocation, which lives to the end of the forward, or of the backward.
Weights ready_weights(const GroupedLinearCall& call, bool by_columns) {
  Weights weights{.type = call.weights.front()->value.scalar_type()};
  std::vector<at::Tensor> scales;
  int64_t bytes = 0;
  for (const Quantized& held :
       weights_of(call, by_columns ? WeightUse::kBackward : WeightUse::kForward)) {
    const QuantizedOperand operand = by_columns ? held.along_columns() : held.along_rows();
    const at::Tensor matrix = by_columns ? operand.matrix : operand.matrix.t();
    weights.matrix.defined() ? weights.rest.push_back(matrix) : void(weights.matrix = matrix);
    scales.push_back(operand.scale);
    bytes += operand.scale.numel();
  }
  weights.scales = as_kernel(
      "te::swizzle_scales", scales, [&] { return at::empty({bytes}, scales.front().options()); });
  return weights;
}

std::vector<at::Tensor> reads_of_product(const Rows& left,
                                         const Weights& right,
                                         const KeptOfExperts& kept) {
  std::vector<at::Tensor> reads = {
      filled(left.values, kept), right.matrix, filled(left.scales, kept)};
  reads.push_back(right.scales);
  reads.insert(reads.end(), right.rest.begin(), right.rest.end());
  return reads;
}

/// Multipliers of rows, which the kernel needs where there are none.
at::Tensor ones(const at::Tensor& like) {
  return at::ones({like.size(0), 1, 1}, like.options().dtype(at::kFloat).requires_grad(false));
}

/// grouped_gemm_quant_wrapper_sm100: rows in 16 bits.
at::Tensor product(const Rows& left, const Weights& right, const KeptOfExperts& kept) {
  const at::Tensor multipliers = ones(left.values);
  at::Tensor output =
      at::empty({left.values.size(0), right.columns()}, left.values.options().dtype(right.type));
  KernelScope kernel("cudnn::grouped_gemm_quant");
  std::vector<at::Tensor> reads = reads_of_product(left, right, kept);
  reads.push_back(filled(multipliers, kept));
  kernel.moves(reads, {filled(output, kept)});
  return output;
}

/// grouped_gemm_glu_wrapper_sm100: the result and what is kept of the activation's input.
std::pair<Rows, at::Tensor> activated_product(const Rows& left,
                                              const Weights& right,
                                              const at::Tensor& weights,
                                              const KeptOfExperts& kept) {
  const at::Tensor multipliers = weights.detach().to(right.type);
  const at::TensorOptions options = multipliers.options();
  const int64_t capacity = left.values.size(0), width = right.columns();
  at::Tensor hidden = at::empty({capacity, width}, options);
  Rows result = make_rows(capacity, width / 2, options);
  KernelScope kernel("cudnn::grouped_gemm_glu");
  std::vector<at::Tensor> reads = reads_of_product(left, right, kept);
  reads.push_back(filled(multipliers, kept));
  std::vector<at::Tensor> writes = filled_both(result, kept);
  writes.push_back(filled(hidden, kept));
  kernel.moves(reads, writes);
  return {std::move(result), std::move(hidden)};
}

/// grouped_gemm_dglu_wrapper_sm100: gradients of the activation's input and of the weights.
std::pair<Rows, at::Tensor> activated_gradient(const Rows& gradient,
                                               const Weights& right,
                                               const at::Tensor& hidden,
                                               const at::Tensor& weights,
                                               const KeptOfExperts& kept) {
  at::Tensor of_weights = at::zeros_like(weights);
  Rows result = make_rows(hidden.size(0), hidden.size(1), hidden.options());
  KernelScope kernel("cudnn::grouped_gemm_dglu");
  std::vector<at::Tensor> reads = reads_of_product(gradient, right, kept);
  reads.insert(reads.end(), {filled(hidden, kept), filled(weights, kept)});
  std::vector<at::Tensor> writes = filled_both(result, kept);
  writes.push_back(filled(of_weights, kept));
  kernel.moves(reads, writes);
  return {std::move(result), std::move(of_weights)};
}

/// The columns of the rows that came: those of all experts one below the other.
at::Tensor stacked(const at::Tensor& columns, const KeptOfExperts& kept, int64_t block) {
  const int64_t rows = kept.rows() / kept.count() / block, width = columns.size(1);
  return columns.view(-1)
      .narrow(0, 0, rows * kept.count() * width)
      .view({width * kept.count(), rows});
}

struct Columns {
  at::Tensor values, scales;
};

/// grouped_gemm_wgrad_wrapper_sm100, which adds to the main gradients.
void add_weight_gradients(const GroupedLinearCall& call,
                          const Rows& gradient,
                          const Columns& input,
                          const KeptOfExperts& kept) {
  const int64_t rows = kept.rows() / kept.count();
  std::vector<at::Tensor> sums;
  for (const Parameter* weight : call.weights) sums.push_back(weight->main_gradient);
  std::vector<at::Tensor> reads = {stacked(gradient.column_values, kept, 1),
                                   input.values.narrow(0, 0, rows),
                                   stacked(gradient.column_scales, kept, kScaledTogether),
                                   filled(input.scales, kept, kScaledTogether),
                                   input.values.narrow(0, rows, kept.rows() - rows)};
  reads.insert(reads.end(), sums.begin(), sums.end());
  {
    KernelScope kernel("cudnn::grouped_gemm_wgrad");
    kernel.moves(reads, sums);
  }
  for (Parameter* weight : call.weights) {
    weight->contribution_added();
    call.store->gradient_stand_in(weight->value);
  }
}

/// Places among what is kept; scales come after their values.
constexpr std::size_t kInput = 0, kHidden = 2, kWeights = 3, kResult = 4;

struct FusedFunction : torch::autograd::Function<FusedFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const at::Tensor& weights,
                            at::TensorList /*parameters*/,
                            const FusedExperts& experts) {
    const KeptOfExperts kept{.experts = experts, .layer = std::make_shared<PagedStash::Layer>()};
    keep(context, kept);
    if (experts.stash) experts.stash->begin_forward();
    Rows rows = quantize(input, kept);
    const Weights first = ready_weights(*experts.first, /*by_columns=*/false);
    auto [result, hidden] = activated_product(rows, first, weights, kept);
    const Weights second = ready_weights(*experts.second, /*by_columns=*/false);
    at::Tensor output = product(result, second, kept);
    kept.layer->rows = kept.rows();
    kept.layer->kept = {{rows.column_values},
                        {rows.column_scales, kScaledTogether},
                        {hidden},
                        {weights.detach()},
                        {result.column_values},
                        {result.column_scales, kScaledTogether}};
    rows = result = {};
    hidden.reset();
    if (experts.stash) experts.stash->end_forward(kept.layer);
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const KeptOfExperts& kept = models::kept<KeptOfExperts>(context);
    const FusedExperts& experts = kept.experts;
    if (experts.stash) experts.stash->begin_backward(kept.layer);
    std::vector<StashedTensor> in = std::exchange(kept.layer->kept, {});
    const auto take_columns = [&in](std::size_t place) {
      return Columns{std::move(in[place].tensor), std::move(in[place + 1].tensor)};
    };
    const Rows gradient = quantize(gradients[0].contiguous(), kept);
    const Weights second = ready_weights(*experts.second, /*by_columns=*/true);
    const auto [of_hidden, of_weights] =
        activated_gradient(gradient, second, in[kHidden].tensor, in[kWeights].tensor, kept);
    now_or_delayed(*experts.second, [kept, gradient, result = take_columns(kResult)] {
      add_weight_gradients(*kept.experts.second, gradient, result, kept);
    });
    const Weights first = ready_weights(*experts.first, /*by_columns=*/true);
    const at::Tensor of_input = product(of_hidden, first, kept);
    now_or_delayed(*experts.first, [kept, rows = of_hidden, input = take_columns(kInput)] {
      add_weight_gradients(*kept.experts.first, rows, input, kept);
    });
    if (experts.stash) experts.stash->end_backward(kept.layer);
    variable_list results{of_input, of_weights};
    results.resize(results.size() + experts.first->weights.size() + experts.second->weights.size() +
                   1);
    return results;
  }
};

}  // namespace

at::Tensor run_fused_experts(const at::Tensor& rows,
                             const at::Tensor& weights,
                             const FusedExperts& experts) {
  std::vector<at::Tensor> parameters;
  for (const auto& call : {experts.first, experts.second}) {
    for (const Parameter* weight : call->weights) parameters.push_back(weight->value);
  }
  return FusedFunction::apply(rows, weights, at::TensorList(parameters), experts);
}

}  // namespace models
