#include "models/attention/core_attention.h"

#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <functional>
#include <stdexcept>

#include "estimator/base/units.h"
#include "estimator/plan/attention_choice.h"
#include "estimator/plan/frameworks.h"
#include "models/attention/all_to_all_attention.h"
#include "models/attention/quantized_attention.h"
#include "models/attention/ring_attention.h"
#include "models/layers/dropout.h"
#include "models/layers/recompute.h"
#include "models/shard/free_in_order.h"
#include "models/shard/host_work.h"
#include "models/shard/kept_value.h"

namespace models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// [s, b, groups, d] -> [s, b, groups * repeats, d], a copy when repeats > 1.
at::Tensor repeat_groups(const at::Tensor& tensor, int64_t repeats) {
  return repeats == 1 ? tensor : tensor.repeat_interleave(repeats, 2);
}

/// [s, b, heads, d] -> [b * heads, s, d], a view.
at::Tensor batch_of_heads(const at::Tensor& tensor) {
  return tensor.reshape({tensor.size(0), -1, tensor.size(3)}).transpose(0, 1);
}

/// [s, b, heads, d] -> [b, heads, s, d], a view.
at::Tensor heads_first(const at::Tensor& tensor) { return tensor.permute({1, 2, 0, 3}); }
/// [b, heads, s, d] -> [s, b, heads, d], a view.
at::Tensor sequence_first(const at::Tensor& tensor) { return tensor.permute({2, 0, 1, 3}); }

/// As DotProductAttention of TransformerEngine hands it over.
std::optional<at::Tensor> in_fp32(const at::Tensor& sink) {
  return sink.defined() ? std::optional(sink.to(at::kFloat)) : std::nullopt;
}

Attended kept_attention(OutputKeeper& keeper, const std::function<Attended()>& run) {
  const OutputKeeper::Outputs outputs = keeper.keep([&] {
    const Attended attended = run();
    return OutputKeeper::Outputs{attended.output, attended.log_sum, attended.seed, attended.offset};
  });
  return {.output = outputs[0], .log_sum = outputs[1], .seed = outputs[2], .offset = outputs[3]};
}

/// cuDNN's attention in what it keeps: query, key, value, the output as the next product reads it
/// and a log-sum for each row (transformer_engine/pytorch/cpp_extensions/fused_attn.py). cuDNN's
/// own workspaces are not public.
struct FusedAttention : torch::autograd::Function<FusedAttention> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& query,
                            const at::Tensor& key,
                            const at::Tensor& value,
                            const std::optional<at::Tensor>& sink,
                            const AttentionCall& call,
                            OutputKeeper* keeper) {
    const auto run = [&] { return attend(query, key, value, call, sink.value_or(at::Tensor())); };
    const Attended attended = keeper == nullptr ? run() : kept_attention(*keeper, run);
    context->save_for_backward({query,
                                key,
                                value,
                                attended.output,
                                attended.log_sum,
                                attended.seed,
                                attended.offset,
                                sink.value_or(at::Tensor())});
    keep(context, call);
    return attended.output.flatten(2);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const AttentionGradients found = attend_backward(
        gradients[0].view(saved[3].sizes()),
        saved[0],
        saved[1],
        saved[2],
        {.output = saved[3], .log_sum = saved[4], .seed = saved[5], .offset = saved[6]},
        kept<AttentionCall>(context),
        saved[7]);
    return {found.query, found.key, found.value, found.sink, at::Tensor(), at::Tensor()};
  }
};

AttentionAcrossRanks make_across_context(const ShardContext& context, const AttentionCall& call) {
  const std::shared_ptr<Communicator>& group = context.groups.context;
  if (!group) return {};
  switch (context.plan.parallelism.context_comm) {
    case estimator::ContextComm::kP2p:
      return [ring = RingAttention(group, call)](
                 const auto& query, const auto& key, const auto& value, const at::Tensor&) {
        return ring.forward(query, key, value);
      };
    case estimator::ContextComm::kAllToAll:
      return [exchange = AllToAllAttention(group, call, context)](
                 const auto& query, const auto& key, const auto& value, const auto& sink) {
        return exchange.forward(query, key, value, sink);
      };
    case estimator::ContextComm::kAllGather:
    case estimator::ContextComm::kHierarchical:
      break;
  }
  throw std::logic_error("a plan with this context_comm is refused");
}

}  // namespace

CoreAttention::CoreAttention(const ShardContext& context, int64_t chunk, AttentionWindow window)
    : kind_(context.plan.training.attention),
      keeper_(context.keeper),
      batch_first_(context.framework().batch_first_attention),
      buffers_(context.framework().fused_weight_gradient && !context.transformer_engine()
                   ? context.buffers
                   : nullptr),
      transformer_engine_(context.transformer_engine()),
      call_({.sequence_dim = reads_batch_first() ? 1 : 0,
             .dropout = context.plan.model.attention_dropout,
             .cudnn = kind_ == estimator::Attention::kFused,
             .writes_score_gradient = estimator::writes_score_gradient(context.plan),
             .window = window.tokens,
             .computes = context.device_computes}),
      python_(kind_ == estimator::Attention::kFused ? context.python_of_engine("FusedAttnFunc")
                                                    : nullptr),
      window_(std::move(window.mask)),
      across_context_(make_across_context(context, call_)) {
  if (kind_ == estimator::Attention::kUnfused) softmax_.emplace(context, chunk);
  if (context.plan.training.fp8_dot_product_attention && !context.device_computes) {
    products_.emplace(context.plan, context.device_computes);
  }
}

at::Tensor CoreAttention::forward(const at::Tensor& query,
                                  const at::Tensor& key,
                                  const at::Tensor& value,
                                  const at::Tensor& sink) const {
  if (across_context_) return across_context(query, key, value, sink);
  if (kind_ == estimator::Attention::kUnfused) return unfused(query, key, value);
  if (window_) return in_window(query, key, value);
  return as_python(python_, [&] { return by_kernel(query, key, value, sink); });
}

at::Tensor CoreAttention::by_kernel(const at::Tensor& query,
                                    const at::Tensor& key,
                                    const at::Tensor& value,
                                    const at::Tensor& sink) const {
  if (products_) return quantized_attention(query, key, value, *products_);
  if (kind_ == estimator::Attention::kFused) {
    return FusedAttention::apply(
        autocasted(query), autocasted(key), autocasted(value), in_fp32(sink), call_, keeper_.get());
  }
  return keeper_ ? kept_flash(query, key, value) : flash(query, key, value);
}

bool CoreAttention::reads_batch_first() const {
  const bool flash =
      kind_ == estimator::Attention::kFlash || kind_ == estimator::Attention::kFlash1;
  return flash && batch_first_;
}

at::Tensor CoreAttention::across_context(const at::Tensor& query,
                                         const at::Tensor& key,
                                         const at::Tensor& value,
                                         const at::Tensor& sink) const {
  if (!reads_batch_first()) {
    return across_context_(query.contiguous(), key.contiguous(), value.contiguous(), sink);
  }
  const auto batch_first = [](const at::Tensor& tensor) {
    return tensor.transpose(0, 1).contiguous();
  };
  return batch_first(
      across_context_(batch_first(query), batch_first(key), batch_first(value), sink));
}

/// Kernels that take a mask take no heads that share keys (use_gqa_in_sdpa and repeat_kv in
/// integrations/sdpa_attention.py of transformers 4.57).
at::Tensor CoreAttention::in_window(const at::Tensor& query,
                                    const at::Tensor& key,
                                    const at::Tensor& value) const {
  const int64_t repeats = query.size(2) / key.size(2);
  const at::Tensor output =
      at::scaled_dot_product_attention(heads_first(query),
                                       heads_first(repeat_groups(key, repeats)),
                                       heads_first(repeat_groups(value, repeats)),
                                       window_->value(),
                                       call_.dropout);
  return sequence_first(output).reshape({query.size(0), query.size(1), -1});
}

/// A value that is narrower than the key is padded to its width, as Megatron-LM does for packed
/// sequences (_prepare_mla_core_attention_value in multi_latent_attention.py).
at::Tensor CoreAttention::flash(const at::Tensor& query,
                                const at::Tensor& key,
                                const at::Tensor& value) const {
  const int64_t missing = key.size(3) - value.size(3);
  if (missing != 0) {
    const at::Tensor wide = flash(query, key, at::constant_pad_nd(value, {0, missing}));
    return wide.unflatten(-1, at::IntArrayRef{query.size(2), key.size(3)})
        .narrow(-1, 0, value.size(3))
        .flatten(2);
  }
  const auto laid_out = [this](const at::Tensor& tensor) {
    if (!batch_first_) return heads_first(tensor);
    return tensor.transpose(0, 1).contiguous().transpose(1, 2);
  };
  const at::Tensor output = at::scaled_dot_product_attention(laid_out(query),
                                                             laid_out(key),
                                                             laid_out(value),
                                                             /*attn_mask=*/{},
                                                             call_.dropout,
                                                             /*is_causal=*/true,
                                                             /*scale=*/std::nullopt,
                                                             query.size(2) != key.size(2));
  const at::Tensor written = sequence_first(output).reshape({query.size(0), query.size(1), -1});
  return batch_first_ ? written.contiguous() : written;
}

/// The same kernel as in flash(), in a function that can take its outputs from the keeper. Heads
/// are padded to a multiple of 8 as scaled_dot_product_attention() pads them (pad_last_dim in
/// aten/src/ATen/native/transformers/attention.cpp).
at::Tensor CoreAttention::kept_flash(const at::Tensor& query,
                                     const at::Tensor& key,
                                     const at::Tensor& value) const {
  constexpr int64_t kWidthMultiple = 8;
  const int64_t width = query.size(3);
  const int64_t missing = estimator::round_up(width, kWidthMultiple) - width;
  if (missing == 0) {
    return FusedAttention::apply(query, key, value, std::nullopt, call_, keeper_.get());
  }
  AttentionCall call = call_;
  call.scale = 1 / std::sqrt(static_cast<double>(width));
  const auto padded = [missing](const at::Tensor& tensor) {
    return at::constant_pad_nd(tensor, {0, missing});
  };
  const at::Tensor wide = FusedAttention::apply(
      padded(query), padded(key), padded(value), std::nullopt, call, keeper_.get());
  return wide.unflatten(-1, at::IntArrayRef{-1, width + missing}).narrow(-1, 0, width).flatten(2);
}

/// What the first product would add were beta not 0: it is never read, but Megatron-LM's own
/// attention has it in the global memory buffer, and TransformerEngine's makes it.
at::Tensor CoreAttention::unread_scores(at::IntArrayRef shape, const at::Tensor& query) const {
  if (buffers_) return buffers_->global_memory(shape, query.options());
  return at::empty(transformer_engine_ ? shape : at::IntArrayRef{1, 1, 1}, query.options());
}

at::Tensor CoreAttention::unfused(const at::Tensor& query,
                                  const at::Tensor& key,
                                  const at::Tensor& value) const {
  at::Tensor mask =
      window_ ? at::logical_not(window_->value()).squeeze(1) : softmax_->mask(query.size(0));
  const int64_t repeats = query.size(2) / key.size(2);
  at::Tensor q = batch_of_heads(query);
  at::Tensor k = batch_of_heads(repeat_groups(key, repeats));
  at::Tensor v = batch_of_heads(repeat_groups(value, repeats));
  const int64_t sequence = q.size(1);

  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(2)));
  at::Tensor unread = unread_scores({q.size(0), sequence, sequence}, q);
  at::Tensor scores = at::baddbmm(unread, q, k.transpose(1, 2), /*beta=*/0, scale);
  if (transformer_engine_) unread.reset();
  at::Tensor weights = dropout(softmax_->forward(scores, mask), call_.dropout);

  at::Tensor output = at::bmm(weights, v);  // [b * heads, s, d]
  output = output.transpose(0, 1).reshape({sequence, query.size(1), -1});
  free_in_order({&q, &k, &v, &mask, &scores, &weights});
  return output;
}

at::Tensor run_core_attention(const ShardContext& context,
                              const std::shared_ptr<const CoreAttention>& core,
                              // The caller gives its references away:
                              // NOLINTNEXTLINE(performance-unnecessary-value-param)
                              variable_list query_key_value,
                              bool copies_views,
                              const at::Tensor& sink) {
  Observer& observer = context.observer;
  const auto attend = [core, &observer, copies_views, sink](const variable_list& inputs) {
    ModuleScope scope(observer, "core_attention");
    if (!copies_views) return core->forward(inputs[0], inputs[1], inputs[2], sink);
    return core->forward(
        inputs[0].contiguous(), inputs[1].contiguous(), inputs[2].contiguous(), sink);
  };
  const bool recompute =
      estimator::recomputes(context.plan, estimator::RecomputeModule::kCoreAttention);
  return recompute ? checkpoint(attend, query_key_value, observer) : attend(query_key_value);
}

}  // namespace models
