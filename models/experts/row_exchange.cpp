#include "models/experts/row_exchange.h"

#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/shard/kept_value.h"

namespace models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor exchange(const at::Tensor& rows, const RowSplits& splits) {
  at::Tensor output =
      at::empty(with_rows(rows, c10::sum_integers(splits.received)), rows.options());
  const at::Tensor input = rows.contiguous();
  if (splits.is_functional) {
    splits.group->start_all_to_all(output, input, splits.received, splits.sent).wait();
  } else {
    splits.group->all_to_all(output, input, splits.received, splits.sent);
  }
  return output;
}

struct AllToAll : torch::autograd::Function<AllToAll> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& rows,
                            const RowSplits& splits,
                            const std::shared_ptr<OutputKeeper>& keeper) {
    keep(context, splits);
    if (!keeper) return exchange(rows, splits);
    return keeper->keep([&] { return OutputKeeper::Outputs{exchange(rows, splits)}; }).front();
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {
        exchange(gradients[0], kept<RowSplits>(context).reversed()), at::Tensor(), at::Tensor()};
  }
};

std::vector<int64_t> sums_of(const std::vector<int64_t>& numbers, int64_t parts) {
  const auto length = static_cast<int64_t>(numbers.size()) / parts;
  std::vector<int64_t> sums;
  for (int64_t part = 0; part < parts; ++part) {
    const auto begin = numbers.begin() + part * length;
    sums.push_back(c10::sum_integers(begin, begin + length));
  }
  return sums;
}

}  // namespace

at::Tensor all_to_all(const at::Tensor& rows,
                      const RowSplits& splits,
                      const std::shared_ptr<OutputKeeper>& keeper) {
  return splits.group ? AllToAll::apply(rows, splits, keeper) : rows;
}

ArrivingRows arriving_rows(const ShardContext& context, const std::vector<int64_t>& of_expert) {
  const estimator::Plan& plan = context.plan;
  const int64_t own = plan.experts_of_rank();
  const int64_t first_own = context.coordinate.expert * own;
  ArrivingRows rows;
  rows.splits.group = context.groups.expert;
  rows.splits.sent = sums_of(of_expert, plan.parallelism.expert);

  // The other ranks' tokens, by their place alone.
  const estimator::ParallelLayout layout(plan.parallelism);
  const int64_t rank = layout.rank(context.coordinate);
  const auto group = layout.group(estimator::GroupKind::kExpertModel, rank);
  rows.of_own_experts.assign(own, 0);
  for (int64_t cut = 0; cut < plan.expert_tensor_size(); ++cut) {
    for (int64_t peer = 0; peer < plan.parallelism.expert; ++peer) {
      const auto at = layout.coordinate(group.member(peer * plan.expert_tensor_size() + cut));
      const std::vector<int64_t> sent = tokens_of_experts(plan, at);
      const auto begin = sent.begin() + first_own;
      rows.from_ranks.insert(rows.from_ranks.end(), begin, begin + own);
      for (int64_t i = 0; i < own; ++i) rows.of_own_experts[i] += begin[i];
      if (cut == context.coordinate.expert_tensor) {
        rows.splits.received.push_back(c10::sum_integers(begin, begin + own));
      }
    }
  }
  return rows;
}

}  // namespace models
