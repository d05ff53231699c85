// When a trainer's gradients are reduced.
#include <ATen/ops/cat.h>

#include "models/pipeline/trainer.h"

namespace models {
namespace {

/// Whether gradients are reduced inside the last backward, where the plan overlaps them. Of a
/// pipeline that does not interleave, Megatron-LM's first stage alone does; "other pipeline stages
/// do grad reduction during pipeline bubble", when they have sent what they send
/// (core/pipeline_parallel/schedules.py, 0.4.0 to 0.19.0, --align-grad-reduce). PyTorch's reducer
/// does on every stage.
bool reduces_in_backward(const ShardContext& context) {
  const bool is_aligned = !context.is_first_stage() || context.chunks() > 1;
  return !is_aligned || context.framework().reducer_buckets;
}

}  // namespace

void Trainer::start_reducing_in(const estimator::PipelineStep& backward) {
  if (backward.micro_batch == micro_batches_ - 1 && reduces_in_backward(context_)) {
    data_parallel_->start_last_micro_batch(backward.chunk);
  }
}

void Trainer::start_reducing_after(const estimator::PipelineStep& backward) {
  if (context_.chunks() == 1 || reduces_in_backward(context_)) return;
  not_reduced_.push_back(backward);
  if (std::ssize(not_reduced_) <= context_.coordinate.pipeline) return;
  const estimator::PipelineStep ended = not_reduced_.front();
  not_reduced_.pop_front();
  if (ended.micro_batch == micro_batches_ - 1) data_parallel_->start_reducing_chunk(ended.chunk);
}

/// Megatron-LM begins the reductions that are left before the deferred products, so that the output
/// layer's gradient may be reduced before it is whole (core/pipeline_parallel/schedules.py).
void Trainer::finish_deferred_gradients() {
  if (!context_.plan.parallelism.defer_embedding_wgrad_compute) return;
  data_parallel_->start_reduction();
  const DirectionScope direction(context_.observer, Direction::kReduceGradients);
  stage_->compute_deferred_gradients();
}

void Trainer::reduce_gradients() {
  data_parallel_->finish_reduction();
  const DirectionScope direction(context_.observer, Direction::kReduceGradients);
  const ModuleScope module(context_.observer, "gradients");
  reduce_sequence_partial_gradients();
  Parameter* tied = stage_->tied_weight();
  if (tied != nullptr && tied->trained && context_.groups.embedding) {
    context_.groups.embedding->all_reduce(tied->main_gradient);
  }
}

/// Norm weights and row-parallel biases saw only a part of the sequence: one flat all-reduce.
void Trainer::reduce_sequence_partial_gradients() {
  if (!context_.groups.tensor) return;
  std::vector<at::Tensor> partial;
  for (Parameter& parameter : stage_->parameters().all()) {
    const bool has_sum = parameter.main_gradient.defined();  // FSDP reduces as it goes
    if (parameter.sequence_partial && has_sum) partial.push_back(parameter.main_gradient.view(-1));
  }
  if (partial.empty()) return;
  const at::Tensor flat = at::cat(partial);
  context_.groups.tensor->all_reduce(flat);
  int64_t offset = 0;
  for (at::Tensor& gradient : partial) {
    gradient.copy_(flat.narrow(0, offset, gradient.numel()));
    offset += gradient.numel();
  }
}

}  // namespace models
