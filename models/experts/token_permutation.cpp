#include "models/experts/token_permutation.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/shard/kept_value.h"
#include "models/shard/kernel_scope.h"

namespace models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// TransformerEngine's moe_permute, and the backward of its moe_unpermute: each token is read once.
at::Tensor permuted(const at::Tensor& tokens, const at::Tensor& order) {
  KernelScope kernel("te::moe_permute");
  at::Tensor rows = at::index_select(tokens, 0, order);
  kernel.moves(tokens, rows);
  return rows;
}

/// moe_unpermute, and the backward of moe_permute: the sums of the rows of each token, written
/// once.
at::Tensor unpermuted(const at::Tensor& rows, const at::Tensor& order, int64_t tokens) {
  return as_kernel("te::moe_unpermute", rows, [&] {
    return at::zeros(with_rows(rows, tokens), rows.options()).index_add_(0, order, rows);
  });
}

/// Rows of tokens in another order, `order` [rows]: of which token each is. Like
/// TransformerEngine's moe_permute_with_probs it keeps a map of [tokens, 2 x experts + 1] for
/// itself and moe_unpermute.
struct Permute : torch::autograd::Function<Permute> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& tokens,
                            const at::Tensor& order,
                            const at::Tensor& row_map,
                            const TokenPermutation& call) {
    context->save_for_backward({order, row_map});
    context->saved_data["tokens"] = tokens.size(0);
    keep(context, call);
    at::Tensor rows = permuted(tokens, order);
    call.tune("permute", rows.device());
    return rows;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const int64_t tokens = context->saved_data["tokens"].toInt();
    const at::Tensor order = context->get_saved_variables()[0];
    const at::Tensor gradient = unpermuted(gradients[0], order, tokens);
    kept<TokenPermutation>(context).tune("unpermute", gradient.device());
    return {gradient, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

/// The sum of a token's rows.
struct Unpermute : torch::autograd::Function<Unpermute> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& rows,
                            const at::Tensor& order,
                            const at::Tensor& row_map,
                            int64_t tokens,
                            const std::shared_ptr<FrameworkBuffers>& buffers) {
    context->save_for_backward({order, row_map});
    keep(context, buffers);
    at::Tensor output = unpermuted(rows, order, tokens);
    buffers->tune_at_first_call("unpermute", output.device());
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor order = context->get_saved_variables()[0];
    const at::Tensor rows = permuted(gradients[0], order);
    kept<std::shared_ptr<FrameworkBuffers>>(context)->tune_at_first_call("permute", rows.device());
    return {rows, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

std::vector<int64_t> with_rows(const at::Tensor& tensor, int64_t rows) {
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape[0] = rows;
  return shape;
}

void TokenPermutation::tune(const std::string& kernel, const at::Device& device) const {
  buffers->tune_at_first_call(has_weights ? kernel + " with weights" : kernel, device);
}

at::Tensor permute_tokens(const at::Tensor& tokens,
                          const at::Tensor& order,
                          const at::Tensor& row_map,
                          const TokenPermutation& call) {
  return Permute::apply(tokens, order, row_map, call);
}

at::Tensor unpermute_tokens(const at::Tensor& rows,
                            const at::Tensor& order,
                            const at::Tensor& row_map,
                            int64_t tokens,
                            const TokenPermutation& call) {
  return Unpermute::apply(rows, order, row_map, tokens, call.buffers);
}

}  // namespace models
