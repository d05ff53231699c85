// The experts of a rank as three tensors, each with one matrix for each expert, and one grouped
// product for each of them (GroupedExperts in torchtitan/models/moe/moe.py, v0.2.2). The product
// needs groups of rows that are multiples of eight, so rows are copied to padded places first
// (indices_padding_wrapper in torchtitan/models/moe/utils.py). This also brings together the rows
// of an expert that arrive from several ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/shard/parameters.h"
#include "models/shard/shard_context.h"

namespace models {

/// Where padded rows come from: [rows + 8 x experts, rounded up to 8] numbers of rows, -1 for
/// padding. Rows lie by rank and, in each rank's part, by expert; `rows_of` is their number [rank]
/// [expert]. An expert without rows has eight of padding.
std::vector<int32_t> padded_places(const std::vector<int64_t>& rows_of, int64_t experts);

class StackedExperts {
 public:
  /// The experts of this rank. `rows_of` is the number of rows [rank][expert] that it computes.
  StackedExperts(ShardContext& context,
                 ParameterStore& store,
                 const std::string& name,
                 const std::vector<int64_t>& rows_of);
  /// [rows, h], sorted by rank and expert -> the same shape. `counts` is [ranks x experts], the
  /// number of rows of each, on the device.
  at::Tensor forward(const at::Tensor& rows, const at::Tensor& counts) const;

 private:
  struct Padding {
    at::Tensor places;  ///< int32 [padded rows]
    at::Tensor sizes;   ///< int32 [experts]
  };

  const Parameter& add(ParameterStore& store, const std::string& name, int64_t half) const;
  Padding pad(const at::Tensor& counts) const;
  at::Tensor run(const at::Tensor& rows, const at::Tensor& sizes) const;

  ShardContext& context_;
  const Parameter& gate_;
  const Parameter& down_;
  const Parameter& up_;
  int64_t padded_rows_;
  at::Tensor places_;               ///< undefined where values do not matter
  mutable at::Tensor last_places_;  ///< ExpertParallel keeps those of its last call
};

}  // namespace models
