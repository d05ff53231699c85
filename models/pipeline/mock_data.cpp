#include "models/pipeline/mock_data.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/triu.h>

namespace models {
namespace {

/// [s + 1] tokens of one sample; a label is the token after.
at::Tensor sample(const estimator::Plan& plan, int64_t iteration, int64_t number) {
  const uint64_t seed = static_cast<uint64_t>(plan.training.seed) * 1'000'003 +
                        static_cast<uint64_t>(iteration * plan.global_batch_size() + number);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::empty({plan.sequence_length() + 1}, at::kLong)
      .random_(0, plan.model.vocab_size, generator);
}

}  // namespace

MicroBatchData mock_micro_batch(const ShardContext& context,
                                int64_t iteration,
                                int64_t micro_batch) {
  const estimator::Plan& plan = context.plan;
  const int64_t sequence = plan.sequence_length(), batch = plan.training.micro_batch_size;
  const int64_t first = (micro_batch * plan.data_parallel_size() + context.coordinate.data) * batch;
  at::Tensor samples = at::empty({sequence + 1, batch}, at::kLong);
  for (int64_t i = 0; i < batch; ++i) {
    samples.select(1, i).copy_(sample(plan, iteration, first + i));
  }
  const ContextPlace place = context.context_place();
  const auto on_device = [&](int64_t from, bool batch_first) {
    const at::Tensor own = own_chunks(samples.narrow(0, from, sequence), 0, place);
    const auto copied = [&](const at::Tensor& tokens) {
      return tokens.to(context.device, at::kLong, false, /*copy=*/true);
    };
    return batch_first ? copied(own.t().contiguous()).t() : copied(own);
  };
  MicroBatchData data;
  const bool embeds_last = plan.model.predicts_more_tokens() && context.is_last_stage();
  if (context.is_first_stage() || embeds_last)
    data.tokens = on_device(0, context.batch_first_tokens());
  if (context.is_last_stage()) data.labels = on_device(1, false);
  if (plan.training.attention_mask_in_dataloader) {
    const at::TensorOptions options = at::TensorOptions(context.device).dtype(at::kBool);
    data.mask = own_chunks(at::ones({batch, 1, sequence, sequence}, options).triu_(1), 2, place);
  }
  if (context.framework().reads_mask) {
    data.ones = at::ones({batch, sequence}, at::kLong).to(context.device);
  }
  return data;
}

}  // namespace models
