#include <algorithm>

#include "estimator/base/units.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {
namespace {

// No published batch has as many samples, and no stage of a data rank as many.
constexpr int64_t kLargestBatch = 1 << 20, kLargestBatchOfRank = 1024;

/// The batch of a step: given, or one micro-batch for each data rank that is known.
struct Batch {
  int64_t data;      ///< ranks
  int64_t per_step;  ///< samples of one micro-batch on each of them
  int64_t samples;   ///< of the step
};

Batch batch_of(const Plan& plan) {
  const int64_t data = plan.parallelism.data.value_or(1);
  const int64_t per_step = plan.training.micro_batch_size * data;
  return {data, per_step, plan.training.global_batch_size.value_or(per_step)};
}

void check_micro_batches(Rules& rules) {
  const TrainingConfig& t = rules.plan().training;
  const auto [data, per_step, batch] = batch_of(rules.plan());
  rules.require(batch % per_step == 0,
                "the global batch does not divide into micro-batches",
                fmt::format("training.global_batch_size = {}, micro_batch_size {} x data {} = {}",
                            batch,
                            t.micro_batch_size,
                            data,
                            per_step),
                batch < per_step
                    ? fmt::format("use a global batch of {}, or fewer data ranks", per_step)
                    : fmt::format("use a global batch of {} or {}",
                                  batch / per_step * per_step,
                                  (batch / per_step + 1) * per_step));
  const int64_t steps = t.gradient_accumulation_steps.value_or(batch / per_step);
  rules.require(
      batch / per_step == steps,
      "the global batch is not that of the gradient accumulation",
      fmt::format("training.global_batch_size = {}, training.gradient_accumulation_steps = {}, and "
                  "{} micro-batches of {} on {} data ranks",
                  batch,
                  steps,
                  batch / per_step,
                  t.micro_batch_size,
                  data),
      "give one of both, and `auto` for the other, or the ranks that they mean");
}

void check_samples(Rules& rules) {
  const Plan& plan = rules.plan();
  const auto [data, per_step, batch] = batch_of(plan);
  const int64_t sequence = plan.training.sequence_length.value_or(1);
  rules.require(
      batch < std::max(kLargestBatch, kLargestBatchOfRank * data * plan.parallelism.pipeline),
      "the global batch counts samples, not tokens",
      fmt::format("training.global_batch_size = {}: {} tokens in a step",
                  batch,
                  whole_with_commas(static_cast<double>(batch) * static_cast<double>(sequence))),
      fmt::format("{} tokens are {} samples of {}",
                  with_commas(batch),
                  with_commas(std::max<int64_t>(1, batch / std::max<int64_t>(1, sequence))),
                  with_commas(sequence)));
}

void check_sequence_length(Rules& rules) {
  const Plan& plan = rules.plan();
  const ParallelConfig& p = plan.parallelism;
  const int64_t sequence = plan.training.sequence_length.value_or(1);
  rules.require(plan.model.position_embedding != PositionEmbedding::kLearnedAbsolute ||
                    sequence <= plan.model.max_position_embeddings,
                "the sequence is longer than the learned positions",
                fmt::format("training.sequence_length = {}, model.max_position_embeddings = {}",
                            sequence,
                            plan.model.max_position_embeddings),
                fmt::format("give --max-position-embeddings {}, or "
                            "model.overrides.max_position_embeddings in a file",
                            sequence));
  rules.require(
      p.context > 1 || !p.sequence_parallel || sequence % p.tensor == 0,
      "the sequence does not divide by the tensor parallel size",
      fmt::format("training.sequence_length = {}, parallelism.tensor = {} with sequence_parallel",
                  sequence,
                  p.tensor),
      fmt::format("use a sequence of {}", round_up(sequence, p.tensor)));
}

}  // namespace

void check_batch_and_sequence(Rules& rules) {
  check_micro_batches(rules);
  check_samples(rules);
  check_sequence_length(rules);
}

void check_length_of_training(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  if (!t.steps || !t.tokens || !plan.parallelism.data.is_known()) return;
  const int64_t steps = divide_up(*t.tokens, plan.tokens_per_step());
  rules.require(*t.steps == steps,
                "the steps and the tokens of the training contradict each other",
                fmt::format("training.steps = {}, training.tokens = {} in steps of {} are {}",
                            *t.steps,
                            *t.tokens,
                            with_commas(plan.tokens_per_step()),
                            with_commas(steps)),
                "give one of the two");
}

}  // namespace estimator
