// Sorts tokens by expert, and sums the rows of each token again: TransformerEngine's moe_permute
// and moe_unpermute (transformer_engine/pytorch/permutation.py).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "models/shard/framework_buffers.h"

namespace models {

/// The shape of a tensor with `rows` in dim 0.
std::vector<int64_t> with_rows(const at::Tensor& tensor, int64_t rows);

struct TokenPermutation {
  std::shared_ptr<FrameworkBuffers> buffers;
  bool has_weights = false;  ///< the kernel also sorts the router's weights

  void tune(const std::string& kernel, const at::Device& device) const;
};

/// tokens [tokens, h] -> [rows, h]; `order` [rows] says of which token each row is. It keeps
/// `row_map`, which unpermute_tokens() needs, too.
at::Tensor permute_tokens(const at::Tensor& tokens,
                          const at::Tensor& order,
                          const at::Tensor& row_map,
                          const TokenPermutation& call);

/// rows [rows, h] -> [tokens, h]: the sum of each token's rows.
at::Tensor unpermute_tokens(const at::Tensor& rows,
                            const at::Tensor& order,
                            const at::Tensor& row_map,
                            int64_t tokens,
                            const TokenPermutation& call);

}  // namespace models
