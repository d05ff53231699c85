// Megatron-Bridge's adapter beside a linear layer that tensor ranks split (ParallelLinearAdapter in
// megatron/bridge/peft/utils.py): two of Megatron-LM's own linear layers, each of which the ranks
// split. Between them each rank has all columns. Sequence parallelism is around them, not inside:
// beside a column parallel layer they read the whole sequence, beside a row parallel one they give
// it, of which each rank keeps its part; or each rank sends its columns to all others, and receives
// their columns of its part of the sequence (lora_a2a_experimental).
#pragma once

#include <variant>

#include "models/layers/parallel_linear.h"

namespace models {

/// Whether TransformerEngine's layer with the norm before it also gives the whole sequence of the
/// norm's output, which the adapter then reads; else the adapter gathers it
/// (get_adapter_attributes_from_linear).
bool reads_gathered_norm(const ShardContext& context, const LinearSpec& spec);

class ParallelAdapter final : public Adapter {
 public:
  /// Of the layer with this spec.
  ParallelAdapter(ShardContext& context,
                  ParameterStore& store,
                  const LinearSpec& of,
                  bool row_parallel);

  at::Tensor add_to(const at::Tensor& output, const at::Tensor& input) const override;

 private:
  at::Tensor beside_column(const at::Tensor& input) const;
  at::Tensor beside_row(const at::Tensor& input) const;

  Group group_;
  bool sequence_parallel_;
  bool gathers_;    ///< it is given a part of the sequence
  bool exchanges_;  ///< columns for its part of the sequence (a2a_experimental)
  double dropout_;
  std::variant<ColumnParallelLinear, RowParallelLinear> in_;
  ColumnParallelLinear out_;
};

}  // namespace models
