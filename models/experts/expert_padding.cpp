#include "models/experts/expert_padding.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <numeric>

#include "estimator/base/units.h"
#include "estimator/plan/fused_experts.h"
#include "models/shard/kept_value.h"
#include "models/shard/kernel_scope.h"

namespace models {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

namespace {

using RowCounts = std::vector<int64_t>;

struct Change {
  RowCounts before, after;
};

int64_t sum(const RowCounts& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

at::Tensor changed(const at::Tensor& tensor, const RowCounts& before, const RowCounts& after) {
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape[0] = sum(after);
  const bool pads = shape[0] > tensor.size(0);
  at::Tensor result = at::empty(shape, tensor.options());
  KernelScope kernel(pads ? "te::multi_row_padding" : "te::multi_row_unpadding");
  const std::vector<at::Tensor> sources = tensor.split_with_sizes(before);
  const std::vector<at::Tensor> targets = result.split_with_sizes(after);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const int64_t rows = std::min(before[i], after[i]);
    targets[i].narrow(0, 0, rows).copy_(sources[i].narrow(0, 0, rows));
    targets[i].narrow(0, rows, after[i] - rows).zero_();
  }
  kernel.moves({pads ? tensor : result}, {result});
  return result;
}

struct RowFunction : torch::autograd::Function<RowFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& tensor,
                            const Change& change) {
    keep(context, change);
    return changed(tensor, change.before, change.after);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Change& change = kept<Change>(context);
    return {changed(gradients[0].contiguous(), change.after, change.before), at::Tensor()};
  }
};

}  // namespace

std::vector<int64_t> padded_rows(const estimator::Plan& plan, std::vector<int64_t> rows_of) {
  const int64_t multiple = estimator::expert_row_multiple(plan.training);
  for (int64_t& rows : rows_of) rows = estimator::round_up(rows, multiple);
  return rows_of;
}

at::Tensor with_zeros(const at::Tensor& tensor, int64_t count) {
  std::vector<int64_t> shape = tensor.sizes().vec();
  if (shape[0] == count) return tensor;
  shape[0] = count - shape[0];
  return at::cat({tensor, at::zeros(shape, tensor.options())});
}

at::Tensor with_rows(const at::Tensor& tensor,
                     const std::vector<int64_t>& before,
                     const std::vector<int64_t>& after) {
  if (before == after) return tensor;
  return RowFunction::apply(tensor, Change{.before = before, .after = after});
}

}  // namespace models
