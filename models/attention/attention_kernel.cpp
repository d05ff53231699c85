#include "models/attention/attention_kernel.h"

#include <ATen/Context.h>
#include <ATen/ops/_efficient_attention_backward.h>
#include <ATen/ops/_efficient_attention_forward.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "models/attention/sink.h"
#include "models/shard/kernel_scope.h"

namespace models {
namespace {

/// The kernels' [b, heads, s, d], a view; and back.
at::Tensor heads_first(const at::Tensor& tensor, int64_t sequence_dim) {
  return sequence_dim == 0 ? tensor.permute({1, 2, 0, 3}) : tensor.transpose(1, 2);
}
at::Tensor heads_third(const at::Tensor& tensor, int64_t sequence_dim) {
  return sequence_dim == 0 ? tensor.permute({2, 0, 1, 3}) : tensor.transpose(1, 2);
}

/// The kernel for the CPU knows no key/value heads that several query heads share.
at::Tensor for_each_query_head(const at::Tensor& tensor, int64_t heads) {
  const int64_t groups = tensor.size(1);
  return groups == heads ? tensor : tensor.repeat_interleave(heads / groups, 1);
}
at::Tensor sum_over_query_heads(const at::Tensor& gradient, int64_t groups) {
  const int64_t heads = gradient.size(1);
  return groups == heads ? gradient
                         : gradient.unflatten(1, at::IntArrayRef{groups, heads / groups}).sum(2);
}

/// All in [b, heads, s, d].
struct HeadsFirst {
  at::Tensor query, key, value;
};

bool widths_differ(const HeadsFirst& in) { return in.key.size(3) != in.value.size(3); }

/// The kernel for the CPU knows one width alone.
at::Tensor as_wide_as(const at::Tensor& tensor, const at::Tensor& other) {
  const int64_t missing = other.size(3) - tensor.size(3);
  return missing == 0 ? tensor : at::constant_pad_nd(tensor, {0, missing});
}

/// What a window adds to scores [s, s]; none without a window, where the kernel masks by itself.
std::optional<at::Tensor> window_scores(const at::Tensor& query, const AttentionCall& call) {
  if (call.window == 0) return std::nullopt;
  const at::Tensor places = at::arange(query.size(2), query.options().dtype(at::kLong));
  const at::Tensor before = places.unsqueeze(1) - places;
  return at::zeros(before.sizes(), query.options())
      .masked_fill_(before.lt(0).logical_or(before.ge(call.window)),
                    -std::numeric_limits<double>::infinity());
}

Attended attend_on_cpu(const HeadsFirst& in, const AttentionCall& call) {
  const int64_t heads = in.query.size(1);
  auto [output, log_sum] = at::_scaled_dot_product_flash_attention_for_cpu(
      in.query,
      for_each_query_head(in.key, heads),
      for_each_query_head(as_wide_as(in.value, in.key), heads),
      call.dropout,
      call.causal && call.window == 0,
      window_scores(in.query, call),
      call.scale);
  return {.output = output.narrow(3, 0, in.value.size(3)), .log_sum = log_sum};
}

AttentionGradients backward_on_cpu(const at::Tensor& gradient,
                                   const HeadsFirst& in,
                                   const at::Tensor& output,
                                   const at::Tensor& log_sum,
                                   const AttentionCall& call) {
  const int64_t heads = in.query.size(1), groups = in.key.size(1);
  const auto [query, key, value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      as_wide_as(gradient, in.key),
      in.query,
      for_each_query_head(in.key, heads),
      for_each_query_head(as_wide_as(in.value, in.key), heads),
      as_wide_as(output, in.key),
      log_sum,
      call.dropout,
      call.causal && call.window == 0,
      window_scores(in.query, call),
      call.scale);
  return {query,
          sum_over_query_heads(key, groups),
          sum_over_query_heads(value, groups).narrow(3, 0, in.value.size(3)),
          at::Tensor()};
}

/// The memory-efficient kernel's [b, s, heads, d], a view of what lies as [s, b, heads, d]: one
/// sequence with the heads of all, so that its outputs lie in the same way; and back.
at::Tensor as_one_sequence(const at::Tensor& tensor) {
  return tensor.permute({2, 0, 1, 3}).flatten(1, 2).unsqueeze(0);
}
at::Tensor as_sequences(const at::Tensor& tensor, int64_t count) {
  return tensor.squeeze(0).unflatten(1, at::IntArrayRef{count, -1}).permute({1, 2, 0, 3});
}

constexpr int64_t kCausalFromTopLeft = 1;  // of the memory-efficient kernel's masks

Attended attend_to_other_width(const HeadsFirst& in, const AttentionCall& call) {
  const auto [output, log_sum, seed, offset, max_q, max_k] =
      at::_efficient_attention_forward(as_one_sequence(in.query),
                                       as_one_sequence(in.key),
                                       as_one_sequence(in.value),
                                       /*bias=*/{},
                                       /*cu_seqlens_q=*/{},
                                       /*cu_seqlens_k=*/{},
                                       /*max_seqlen_q=*/{},
                                       /*max_seqlen_k=*/{},
                                       call.dropout,
                                       call.causal ? kCausalFromTopLeft : 0,
                                       /*compute_log_sumexp=*/true,
                                       call.scale);
  return {.output = as_sequences(output, in.query.size(0)),
          .log_sum = log_sum,
          .seed = seed,
          .offset = offset};
}

AttentionGradients backward_of_other_width(const at::Tensor& gradient,
                                           const HeadsFirst& in,
                                           const at::Tensor& output,
                                           const Attended& attended,
                                           const AttentionCall& call) {
  const auto [query, key, value, bias] =
      at::_efficient_attention_backward(as_one_sequence(gradient),
                                        as_one_sequence(in.query),
                                        as_one_sequence(in.key),
                                        as_one_sequence(in.value),
                                        /*bias=*/{},
                                        as_one_sequence(output),
                                        /*cu_seqlens_q=*/{},
                                        /*cu_seqlens_k=*/{},
                                        in.query.size(2),
                                        in.key.size(2),
                                        attended.log_sum,
                                        call.dropout,
                                        attended.seed,
                                        attended.offset,
                                        call.causal ? kCausalFromTopLeft : 0,
                                        /*bias_requires_grad=*/false,
                                        call.scale,
                                        /*num_splits_key=*/1);
  const int64_t count = in.query.size(0);
  return {as_sequences(query, count),
          as_sequences(key, count),
          as_sequences(value, count),
          at::Tensor()};
}

/// flash-attn's [b, s, heads, d], a view; and back.
at::Tensor sequence_second(const at::Tensor& tensor) { return tensor.transpose(1, 2); }

Attended attend_in_window(const HeadsFirst& in, const AttentionCall& call) {
  const auto [output, log_sum, seed, offset, mask] =
      at::_flash_attention_forward(sequence_second(in.query),
                                   sequence_second(in.key),
                                   sequence_second(in.value),
                                   /*cum_seq_q=*/{},
                                   /*cum_seq_k=*/{},
                                   in.query.size(2),
                                   in.key.size(2),
                                   call.dropout,
                                   call.causal,
                                   /*return_debug_mask=*/false,
                                   call.scale,
                                   /*window_size_left=*/call.window - 1,
                                   /*window_size_right=*/0);
  return {.output = sequence_second(output), .log_sum = log_sum, .seed = seed, .offset = offset};
}

AttentionGradients backward_in_window(const at::Tensor& gradient,
                                      const HeadsFirst& in,
                                      const at::Tensor& output,
                                      const Attended& attended,
                                      const AttentionCall& call) {
  const auto [query, key, value] =
      at::_flash_attention_backward(sequence_second(gradient),
                                    sequence_second(in.query),
                                    sequence_second(in.key),
                                    sequence_second(in.value),
                                    sequence_second(output),
                                    attended.log_sum,
                                    /*cum_seq_q=*/{},
                                    /*cum_seq_k=*/{},
                                    in.query.size(2),
                                    in.key.size(2),
                                    call.dropout,
                                    call.causal,
                                    attended.seed,
                                    attended.offset,
                                    call.scale,
                                    /*window_size_left=*/call.window - 1,
                                    /*window_size_right=*/0);
  return {sequence_second(query), sequence_second(key), sequence_second(value), at::Tensor()};
}

Attended attend_on_gpu(const HeadsFirst& in, const AttentionCall& call) {
  if (widths_differ(in)) return attend_to_other_width(in, call);
  if (call.window > 0) return attend_in_window(in, call);
  const auto [output, log_sum, cum_q, cum_k, max_q, max_k, seed, offset, mask] =
      at::_scaled_dot_product_flash_attention(in.query,
                                              in.key,
                                              in.value,
                                              call.dropout,
                                              call.causal,
                                              /*return_debug_mask=*/false,
                                              call.scale);
  return {.output = output, .log_sum = log_sum, .seed = seed, .offset = offset};
}

AttentionGradients backward_on_gpu(const at::Tensor& gradient,
                                   const HeadsFirst& in,
                                   const at::Tensor& output,
                                   const Attended& attended,
                                   const AttentionCall& call) {
  if (widths_differ(in)) return backward_of_other_width(gradient, in, output, attended, call);
  if (call.window > 0) return backward_in_window(gradient, in, output, attended, call);
  const auto [query, key, value] =
      at::_scaled_dot_product_flash_attention_backward(gradient,
                                                       in.query,
                                                       in.key,
                                                       in.value,
                                                       output,
                                                       attended.log_sum,
                                                       /*cum_seq_q=*/{},
                                                       /*cum_seq_k=*/{},
                                                       in.query.size(2),
                                                       in.key.size(2),
                                                       call.dropout,
                                                       call.causal,
                                                       attended.seed,
                                                       attended.offset,
                                                       call.scale);
  return {query, key, value, at::Tensor()};
}

/// PyTorch's deterministic backward has an fp32 gradient of the queries for each of its parts, and
/// adds them up. cuDNN's does not.
class NotDeterministic {
 public:
  NotDeterministic() { at::globalContext().setDeterministicAlgorithms(false, false); }
  ~NotDeterministic() { at::globalContext().setDeterministicAlgorithms(before_, false); }
  NotDeterministic(const NotDeterministic&) = delete;
  NotDeterministic& operator=(const NotDeterministic&) = delete;

 private:
  bool before_ = at::globalContext().deterministicAlgorithms();
};

/// cuDNN writes it, under a causal mask half of it, and a product of its own reads that: moved as
/// often as this writes it.
at::Tensor score_gradient(const HeadsFirst& in) {
  return at::empty({in.query.size(0), in.query.size(1), in.query.size(2), in.key.size(2)},
                   in.query.options())
      .fill_(0);
}

/// [b, heads, s, d] whose memory is [s, b, heads, d], as if it were [b, s, heads, d]: PyTorch's
/// kernel copies output and gradient that lie otherwise, and cuDNN's does not.
at::Tensor as_if_in_turn(const at::Tensor& tensor) {
  const at::Tensor in_memory = tensor.permute({2, 0, 1, 3});
  if (!in_memory.is_contiguous()) return tensor;
  return in_memory.view({tensor.size(0), tensor.size(2), tensor.size(1), tensor.size(3)})
      .transpose(1, 2);
}

AttentionGradients backward_of_cudnn(const at::Tensor& gradient,
                                     const HeadsFirst& in,
                                     const at::Tensor& output,
                                     const Attended& attended,
                                     const AttentionCall& call) {
  fill_outputs({in.query.sizes(), in.key.sizes(), in.value.sizes()}, in.query.options());
  const at::Tensor workspace = call.writes_score_gradient ? score_gradient(in) : at::Tensor();
  const NotDeterministic as_cudnn;
  if (call.computes || widths_differ(in)) {
    return backward_on_gpu(gradient, in, output, attended, call);
  }
  return backward_on_gpu(as_if_in_turn(gradient), in, as_if_in_turn(output), attended, call);
}

AttentionGradients backward_of_kernel(const at::Tensor& gradient,
                                      const HeadsFirst& in,
                                      const at::Tensor& output,
                                      const Attended& attended,
                                      const AttentionCall& call) {
  if (in.query.is_cpu()) return backward_on_cpu(gradient, in, output, attended.log_sum, call);
  return call.cudnn ? backward_of_cudnn(gradient, in, output, attended, call)
                    : backward_on_gpu(gradient, in, output, attended, call);
}

}  // namespace

Attended attend(const at::Tensor& query,
                const at::Tensor& key,
                const at::Tensor& value,
                const AttentionCall& call,
                const at::Tensor& sink) {
  const HeadsFirst in{heads_first(query, call.sequence_dim),
                      heads_first(key, call.sequence_dim),
                      heads_first(value, call.sequence_dim)};
  Attended attended = query.is_cpu() ? attend_on_cpu(in, call) : attend_on_gpu(in, call);
  attended.output = heads_third(attended.output, call.sequence_dim).contiguous();
  if (sink.defined()) add_sink(attended, sink, call);
  return attended;
}

AttentionGradients attend_backward(const at::Tensor& gradient,
                                   const at::Tensor& query,
                                   const at::Tensor& key,
                                   const at::Tensor& value,
                                   const Attended& attended,
                                   const AttentionCall& call,
                                   const at::Tensor& sink) {
  const int64_t dim = call.sequence_dim;
  const HeadsFirst in{heads_first(query, dim), heads_first(key, dim), heads_first(value, dim)};
  const at::Tensor output = heads_first(attended.output, dim), given = heads_first(gradient, dim);
  const AttentionGradients found = backward_of_kernel(given, in, output, attended, call);
  return {heads_third(found.query, dim),
          heads_third(found.key, dim),
          heads_third(found.value, dim),
          sink.defined() ? sink_gradient(gradient, attended, sink, call) : at::Tensor()};
}

}  // namespace models
