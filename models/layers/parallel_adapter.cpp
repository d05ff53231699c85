#include "models/layers/parallel_adapter.h"

#include <ATen/TensorOperators.h>

#include "models/layers/dropout.h"
#include "models/layers/sequence_mappings.h"

namespace models {
namespace {

/// `whole_input`: under sequence parallelism the sum of the input's gradients over the ranks comes
/// with the reduce-scatter behind it (disable_grad_reduce).
LinearSpec in_spec(const ShardContext& context, const LinearSpec& of, bool row_parallel) {
  return {.name = of.name + ".adapter.linear_in",
          .inputs = of.inputs,
          .outputs = context.plan.training.lora_rank,
          .whole_input = !row_parallel && context.sequence_parallel(),
          .at_mark = of.at_mark,
          .adapter = true};
}

LinearSpec out_spec(const ShardContext& context, const LinearSpec& of) {
  return {.name = of.name + ".adapter.linear_out",
          .inputs = context.plan.training.lora_rank,
          .outputs = of.outputs,
          .output_blocks = of.output_blocks,
          .at_mark = of.at_mark,
          .adapter = true};
}

std::variant<ColumnParallelLinear, RowParallelLinear> make_in(ShardContext& context,
                                                              ParameterStore& store,
                                                              const LinearSpec& of,
                                                              bool row_parallel) {
  const LinearSpec spec = in_spec(context, of, row_parallel);
  if (row_parallel) return RowParallelLinear(context, store, spec);
  return ColumnParallelLinear(context, store, spec);
}

/// get_adapter_attributes_from_linear: the layer itself does not gather for its product alone.
bool overlaps_gather(const ShardContext& context, const LinearSpec& spec) {
  const estimator::ParallelConfig& p = context.plan.parallelism;
  const bool is_qkv = spec.target == estimator::AdapterTarget::kQueryKeyValue;
  return p.tp_comm_overlap && !(is_qkv && p.tp_comm_overlap_disable_qkv);
}

at::Tensor all_columns(const at::Tensor& columns, const Group& group) {
  return group ? gather_columns(columns, group) : columns;
}

}  // namespace

bool reads_gathered_norm(const ShardContext& context, const LinearSpec& spec) {
  return context.sequence_parallel() && context.transformer_engine() && spec.after_norm &&
         !overlaps_gather(context, spec);
}

ParallelAdapter::ParallelAdapter(ShardContext& context,
                                 ParameterStore& store,
                                 const LinearSpec& of,
                                 bool row_parallel)
    : group_(context.groups.tensor),
      sequence_parallel_(context.sequence_parallel() && group_),
      gathers_(sequence_parallel_ && !row_parallel && !reads_gathered_norm(context, of)),
      exchanges_(sequence_parallel_ && context.plan.training.lora_a2a_experimental),
      dropout_(context.plan.training.lora_dropout),
      in_(make_in(context, store, of, row_parallel)),
      out_(context, store, out_spec(context, of)) {}

at::Tensor ParallelAdapter::add_to(const at::Tensor& output, const at::Tensor& input) const {
  const at::Tensor read = dropout(input, dropout_);
  const bool is_row = std::holds_alternative<RowParallelLinear>(in_);
  at::Tensor added = is_row ? beside_row(read) : beside_column(read);
  added = added * kAdapterScaling;  // frees what the product gave before the sum is there
  return output + added;
}

at::Tensor ParallelAdapter::beside_column(const at::Tensor& input) const {
  const at::Tensor whole = gathers_ ? gather_from_sequence(input, group_) : input;
  const at::Tensor low = std::get<ColumnParallelLinear>(in_).forward(whole);
  return out_.forward(all_columns(low, group_));
}

at::Tensor ParallelAdapter::beside_row(const at::Tensor& input) const {
  const at::Tensor low = std::get<RowParallelLinear>(in_).forward(input);
  if (exchanges_) return columns_to_sequence(out_.forward(low), group_);
  const at::Tensor whole = all_columns(out_.forward(low), group_);
  return sequence_parallel_ ? scatter_to_sequence(whole, group_) : whole;
}

}  // namespace models
