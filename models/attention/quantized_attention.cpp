#include "models/attention/quantized_attention.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "estimator/base/units.h"
#include "models/shard/kept_value.h"
#include "models/shard/kernel_scope.h"
#include "models/shard/watched_operator.h"

namespace models {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

/// A tensor [s, b, heads, width] in 8 bits, cast both ways.
struct CastHeads {
  Quantized values;
  std::vector<int64_t> shape;

  /// As the operator reads it: [b, heads, s, width], a view.
  at::Tensor heads_first() const { return values.by_rows.view(shape).permute({1, 2, 0, 3}); }
};

/// Scales of several tensors, one behind the other, each [b, heads, s, width] in bytes.
at::Tensor ordered_scales(const std::vector<CastHeads>& all, bool by_columns) {
  constexpr int64_t kOfRows = 4, kOfColumns = 128;
  int64_t bytes = 0;
  std::vector<at::Tensor> made;
  for (const CastHeads& one : all) {
    const std::vector<int64_t>& s = one.shape;
    bytes += s[1] * s[2] *
             (by_columns ? s[0] / kScaledTogether * estimator::round_up(s[3], kOfColumns)
                         : s[0] * estimator::round_up(s[3] / kScaledTogether, kOfRows));
    made.push_back(by_columns ? one.values.scale_of_columns : one.values.scale_of_rows);
  }
  at::Tensor ordered = as_kernel(
      "te::transpose_to_bhsd", made, [&] { return at::empty({bytes}, made.front().options()); });
  KernelScope kernel("te::swizzle_scales");
  kernel.moves({ordered}, {ordered});
  return ordered;
}

struct CastTogether {
  std::vector<CastHeads> tensors;
  at::Tensor row_scales, column_scales;
};

/// mxfp8_quantize_fast_path
CastTogether cast(const std::vector<at::Tensor>& all,
                  QuantizedRole role,
                  const QuantizedProducts& products) {
  CastTogether together;
  for (const at::Tensor& given : all) {
    const at::Tensor one = given.contiguous();  // of views, as where all three are in one tensor
    together.tensors.push_back(
        {products.quantize(one.view({one.size(0), -1}), role, {.waits = true}), one.sizes().vec()});
  }
  together.row_scales = ordered_scales(together.tensors, /*by_columns=*/false);
  together.column_scales = ordered_scales(together.tensors, /*by_columns=*/true);
  for (CastHeads& one : together.tensors) {
    one.values.scale_of_rows.reset();
    one.values.scale_of_columns.reset();
  }
  return together;
}

struct Kept {
  QuantizedProducts products;
  CastTogether cast;
  at::Tensor output, log_sum, random_state;
};

struct QuantizedAttention : torch::autograd::Function<QuantizedAttention> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& query,
                            const at::Tensor& key,
                            const at::Tensor& value,
                            const QuantizedProducts& products) {
    CastTogether in = cast({query, key, value}, QuantizedRole::kInput, products);
    std::vector<int64_t> shape = query.sizes().vec();
    shape[3] = value.size(3);
    const at::TensorOptions options = query.options().requires_grad(false);
    const at::Tensor random_state = at::empty({2}, options.dtype(at::kLong));
    at::Tensor log_sum;
    const at::Tensor output = watched_operator(
        "aten::_scaled_dot_product_flash_attention",
        "",
        {in.tensors[0].heads_first(),
         in.tensors[1].heads_first(),
         in.tensors[2].heads_first(),
         /*dropout=*/0.0,
         /*is_causal=*/true,
         /*return_debug_mask=*/false,
         /*scale=*/c10::IValue()},
        [&] {
          log_sum = at::empty({shape[1], shape[2], shape[0]}, options.dtype(at::kFloat));
          return at::empty(shape, options);
        });
    // What is kept of the output is without its graph, which would hold this node.
    keep(context, Kept{products, std::move(in), output, log_sum, random_state});
    return output.flatten(2).detach();
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    Kept& kept = models::kept<Kept>(context);
    const std::vector<CastHeads>& in = kept.cast.tensors;
    const at::Tensor given = gradients[0].contiguous().view(kept.output.sizes());
    const CastTogether gradient = cast({given}, QuantizedRole::kGradient, kept.products);
    variable_list results;
    for (const CastHeads& one : in) results.push_back(at::empty(one.shape, given.options()));
    const int64_t rows = in[0].shape[0];
    watched_operator("aten::_scaled_dot_product_flash_attention_backward",
                     "",
                     {gradient.tensors[0].heads_first(),
                      in[0].heads_first(),
                      in[1].heads_first(),
                      in[2].heads_first(),
                      kept.output.permute({1, 2, 0, 3}),
                      kept.log_sum,
                      c10::IValue(),
                      c10::IValue(),
                      rows,
                      rows,
                      /*dropout=*/0.0,
                      /*is_causal=*/true,
                      kept.random_state,
                      kept.random_state,
                      /*scale=*/c10::IValue()},
                     [&] { return results[0]; });
    kept.cast = {};
    kept.output.reset();
    results.emplace_back();  // of the products
    return results;
  }
};

}  // namespace

at::Tensor quantized_attention(const at::Tensor& query,
                               const at::Tensor& key,
                               const at::Tensor& value,
                               const QuantizedProducts& products) {
  return QuantizedAttention::apply(query, key, value, products);
}

}  // namespace models
