#include "models/attention/sink.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/logaddexp.h>

namespace models {
namespace {

/// [b, heads, s] -> [s, b, heads, 1] or [b, s, heads, 1], as the output lies.
at::Tensor for_each_output(const at::Tensor& of_rows, const AttentionCall& call) {
  const at::Tensor heads_last =
      call.sequence_dim == 0 ? of_rows.permute({2, 0, 1}) : of_rows.transpose(1, 2);
  return heads_last.unsqueeze(-1);
}

at::Tensor for_each_row(const at::Tensor& sink) { return sink.view({1, -1, 1}); }

}  // namespace

void add_sink(Attended& attended, const at::Tensor& sink, const AttentionCall& call) {
  if (!call.computes) return;
  const at::Tensor with_sink = at::logaddexp(attended.log_sum, for_each_row(sink));
  const at::Tensor share = for_each_output((attended.log_sum - with_sink).exp(), call);
  attended.output.mul_(share.to(attended.output.scalar_type()));
  attended.log_sum = with_sink;
}

/// Of a softmax p over scores of which the last has no value: its gradient is -p_last times the sum
/// of output and its gradient.
at::Tensor sink_gradient(const at::Tensor& output_gradient,
                         const Attended& attended,
                         const at::Tensor& sink,
                         const AttentionCall& call) {
  if (!call.computes) return at::empty_like(sink);
  const at::Tensor weight = for_each_output((for_each_row(sink) - attended.log_sum).exp(), call);
  const at::Tensor product = output_gradient.to(at::kFloat) * attended.output.to(at::kFloat);
  return -(weight.squeeze(-1) * product.sum(-1)).sum(at::IntArrayRef{0, 1});
}

}  // namespace models
