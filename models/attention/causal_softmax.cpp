#include "models/attention/causal_softmax.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/triu.h>
#include <torch/csrc/autograd/custom_function.h>

#include <bit>

#include "estimator/plan/megatron_core.h"
#include "models/shard/free_in_order.h"
#include "models/shard/kernel_scope.h"
#include "models/shard/watched_operator.h"

namespace models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kMasked = -10000.0;

at::Tensor future_keys(int64_t sequence, const at::Device& device) {
  return at::ones({1, sequence, sequence}, at::TensorOptions(device).dtype(at::kBool)).triu_(1);
}

at::Tensor not_within(const at::Tensor& from_left, const at::Tensor& from_right) {
  at::Tensor within_left = from_left <= 0;
  at::Tensor within_right = (from_right < 0).bitwise_not();
  const at::Tensor seen = within_left.bitwise_and(within_right);
  free_in_order({&within_left, &within_right});
  return seen.logical_not();
}

/// The same as TransformerEngine makes it for each call, from the distance of each key
/// (get_full_mask in transformer_engine/pytorch/attention/dot_product_attention/utils.py).
at::Tensor future_keys_by_distance(int64_t sequence,
                                   int64_t masked_sequences,
                                   const at::Device& device) {
  const at::Tensor places = at::arange(sequence, at::TensorOptions(device).dtype(at::kInt));
  at::Tensor distance = places.view({1, -1, 1}) - places;
  at::Tensor from_left = distance - sequence, from_right = distance + 0;
  at::Tensor future = not_within(from_left, from_right);
  at::Tensor of_all =
      masked_sequences == 0
          ? future
          : at::logical_or(future, future.expand({masked_sequences, -1, -1}));  // the loader's
  free_in_order({&distance, &from_left, &from_right, &future});
  return of_all;
}

/// [1, s, s] of a mask, which is the same for all sequences.
at::Tensor of_one(const at::Tensor& mask) { return mask.narrow(0, 0, 1); }

/// What TransformerEngine is given for a chunk: only first and last stage have a data loader.
int64_t masked_sequences(const ShardContext& context, int64_t chunk) {
  const estimator::TrainingConfig& training = context.plan.training;
  const bool has_loader = context.is_first_piece(chunk) || context.is_last_piece(chunk);
  return has_loader && training.attention_mask_in_dataloader.value_or(false)
             ? training.micro_batch_size
             : 0;
}

struct SoftmaxKernel : torch::autograd::Function<SoftmaxKernel> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& scores,
                            const at::Tensor& mask,
                            bool device_computes) {
    at::Tensor weights = as_kernel("megatron::scaled_masked_softmax", scores, [&] {
      scores.detach().masked_fill_(of_one(mask), kMasked);
      return at::_softmax(scores, -1, /*half_to_float=*/false);
    });
    context->save_for_backward({weights});
    context->saved_data["device_computes"] = device_computes;
    return weights;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor weights = context->get_saved_variables()[0];
    KernelScope kernel("megatron::scaled_masked_softmax_backward");
    at::Tensor gradient = gradients[0].contiguous();
    if (context->saved_data["device_computes"].toBool()) {
      at::_softmax_backward_data_out(gradient, gradient, weights, -1, weights.scalar_type());
    } else {  // the operator multiplies its inputs into another tensor first, the kernel does not
      watched_operator("aten::_softmax_backward_data",
                       "out",
                       {gradient, weights, -1, weights.scalar_type(), gradient},
                       [&] { return gradient; });
    }
    kernel.moves({gradients[0], weights}, gradient);
    return {gradient, at::Tensor(), at::Tensor()};
  }
};

/// get_batch_per_block of the kernels (scaled_masked_softmax.h of Megatron-LM and
/// TransformerEngine): rows that one block of 128 threads works on.
int64_t rows_of_block(int64_t keys) {
  constexpr int64_t kWarp = 32, kBlock = 128, kTwoOfWarp = 128;
  const auto width = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(keys)));
  return kBlock / std::min(width, kWarp) * (width <= kTwoOfWarp ? 2 : 1);
}

}  // namespace

bool softmax_kernel_takes(int64_t batches, int64_t sequence, at::ScalarType type) {
  const bool keys_fit = sequence > 16 && sequence < 16384 && sequence % 8 == 0;
  return type != at::kFloat && keys_fit && batches % 4 == 0 &&
         sequence % rows_of_block(sequence) == 0;
}

bool causal_softmax_kernel_takes(int64_t batches,
                                 int64_t sequence,
                                 at::ScalarType type,
                                 int64_t most_keys) {
  const bool keys_fit = sequence > 16 && sequence <= most_keys && sequence % 4 == 0;
  return type != at::kFloat && keys_fit && batches % 4 == 0 &&
         batches % rows_of_block(sequence) == 0;
}

CausalSoftmax::CausalSoftmax(const ShardContext& context, int64_t chunk)
    : transformer_engine_(context.transformer_engine()),
      megatron_(context.framework().megatron_fusions),
      most_fused_keys_(estimator::fused_softmax_keys(context.plan.training)),
      widens_(context.plan.training.attention_softmax_in_fp32),
      device_computes_(context.device_computes),
      device_(context.device),
      buffers_(context.buffers),
      masked_sequences_(masked_sequences(context, chunk)) {
  if (transformer_engine_) return;
  lasting_mask_ = future_keys(context.plan.sequence_length(), device_);
  context.observer.memory_lasts(lasting_mask_,
                                {estimator::MemoryCategory::kWorkspace, "attention_mask", ""});
}

at::Tensor CausalSoftmax::mask(int64_t sequence) const {
  return transformer_engine_ ? future_keys_by_distance(sequence, masked_sequences_, device_)
                             : lasting_mask_.narrow(1, 0, sequence).narrow(2, 0, sequence);
}

bool CausalSoftmax::has_kernel_for(const at::Tensor& scores) const {
  const int64_t batches = scores.size(0), sequence = scores.size(1);
  const at::ScalarType type = scores.scalar_type();
  return transformer_engine_
             ? softmax_kernel_takes(batches, sequence, type)
             : causal_softmax_kernel_takes(batches, sequence, type, most_fused_keys_);
}

at::Tensor CausalSoftmax::forward(const at::Tensor& scores, const at::Tensor& mask) const {
  if (has_kernel_for(scores)) return SoftmaxKernel::apply(scores, mask, device_computes_);
  if (transformer_engine_ || (megatron_ && widens_)) return in_fp32(scores, mask);
  scores.masked_fill_(of_one(mask), kMasked);
  return at::_softmax(scores, -1, /*half_to_float=*/false);
}

at::Tensor CausalSoftmax::with_cached(const at::Tensor& mask) const {
  return transformer_engine_ ? at::logical_or(mask, buffers_->causal_mask(of_one(mask))) : mask;
}

/// Widens before there is a mask of its own, which is freed before the wide scores.
at::Tensor CausalSoftmax::in_fp32(const at::Tensor& scores, const at::Tensor& mask) const {
  const at::Tensor single = scores.to(at::kFloat);
  const at::Tensor hidden = with_cached(mask);
  single.masked_fill_(of_one(hidden), kMasked);
  return at::_softmax(single, -1, /*half_to_float=*/false).to(scores.scalar_type());
}

}  // namespace models
