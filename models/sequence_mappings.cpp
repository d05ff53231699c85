#include "models/sequence_mappings.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include "models/kept_value.h"

namespace models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct ReduceFromRanks : torch::autograd::Function<ReduceFromRanks> {
  static at::Tensor forward(AutogradContext* context, at::Tensor input, const Group& group) {
    group->all_reduce(input);  // in place: the input is a sum's part that nobody else reads
    context->mark_dirty({input});
    return input;
  }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    return {gradients[0], at::Tensor()};
  }
};

struct CopyToRanks : torch::autograd::Function<CopyToRanks> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const Group& group) {
    keep(context, group);
    return input;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    at::Tensor sum = gradients[0].clone();
    kept<Group>(context)->all_reduce(sum);
    return {sum, at::Tensor()};
  }
};

struct ReduceScatterToSequence : torch::autograd::Function<ReduceScatterToSequence> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const Group& group) {
    keep(context, group);
    return reduce_scatter_sequence(input, *group);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {gather_sequence(gradients[0], *kept<Group>(context)), at::Tensor()};
  }
};

struct ScatterToSequence : torch::autograd::Function<ScatterToSequence> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const Group& group) {
    keep(context, group);
    const int64_t part = input.size(0) / group->size();
    return input.narrow(0, group->index() * part, part).clone();
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {gather_sequence(gradients[0], *kept<Group>(context)), at::Tensor()};
  }
};

struct GatherFromSequence : torch::autograd::Function<GatherFromSequence> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const Group& group) {
    keep(context, group);
    return gather_sequence(input, *group);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {reduce_scatter_sequence(gradients[0], *kept<Group>(context)), at::Tensor()};
  }
};

/// With Megatron-LM's copies between dim 0, which collectives know, and the last one
/// (_gather_along_last_dim, _reduce_scatter_along_last_dim in megatron/core/tensor_parallel).
struct GatherLastDim : torch::autograd::Function<GatherLastDim> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const Group& group) {
    keep(context, group);
    return at::cat(gather_sequence(input, *group).chunk(group->size(), 0), -1);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Group& group = kept<Group>(context);
    const at::Tensor by_rank = at::cat(gradients[0].chunk(group->size(), -1), 0);
    return {reduce_scatter_sequence(by_rank, *group), at::Tensor()};
  }
};

}  // namespace

at::Tensor reduce_from_ranks(const at::Tensor& input, const Group& group) {
  return ReduceFromRanks::apply(input, group);
}

at::Tensor copy_to_ranks(const at::Tensor& input, const Group& group) {
  return CopyToRanks::apply(input, group);
}

at::Tensor reduce_scatter_to_sequence(const at::Tensor& input, const Group& group) {
  return ReduceScatterToSequence::apply(input, group);
}

at::Tensor gather_from_sequence(const at::Tensor& input, const Group& group) {
  return GatherFromSequence::apply(input, group);
}

at::Tensor gather_last_dim(const at::Tensor& input, const Group& group) {
  return GatherLastDim::apply(input, group);
}

at::Tensor scatter_to_sequence(const at::Tensor& input, const Group& group) {
  return ScatterToSequence::apply(input, group);
}

at::Tensor gather_sequence(const at::Tensor& part, Communicator& group) {
  std::vector<int64_t> shape = part.sizes().vec();
  shape[0] *= group.size();
  at::Tensor whole = at::empty(shape, part.options());
  group.all_gather(whole, part.contiguous());
  return whole;
}

at::Tensor reduce_scatter_sequence(const at::Tensor& whole, Communicator& group) {
  std::vector<int64_t> shape = whole.sizes().vec();
  shape[0] /= group.size();
  at::Tensor part = at::empty(shape, whole.options());
  group.reduce_scatter(part, whole.contiguous());
  return part;
}

}  // namespace models
