#include "models/layers/sequence_mappings.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>

#include "models/shard/kept_value.h"

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

struct CutSequence {
  Group group;
  Parts parts;
};

struct ReduceScatterToSequence : torch::autograd::Function<ReduceScatterToSequence> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const CutSequence& cut) {
    keep(context, cut);
    return reduce_scatter_sequence(input, *cut.group, cut.parts);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const CutSequence& cut = kept<CutSequence>(context);
    return {gather_sequence(gradients[0], *cut.group, cut.parts), at::Tensor()};
  }
};

struct ScatterToSequence : torch::autograd::Function<ScatterToSequence> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const Group& group) {
    keep(context, group);
    const int64_t part = input.size(0) / group->size();
    return input.narrow(0, group->index() * part, part);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {gather_sequence(gradients[0], *kept<Group>(context)), at::Tensor()};
  }
};

struct GatherFromSequence : torch::autograd::Function<GatherFromSequence> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const CutSequence& cut) {
    keep(context, cut);
    return gather_sequence(input, *cut.group, cut.parts);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const CutSequence& cut = kept<CutSequence>(context);
    return {reduce_scatter_sequence(gradients[0], *cut.group, cut.parts), at::Tensor()};
  }
};

/// With Megatron-LM's copies between dim 0, which collectives know, and the last one
/// (_gather_along_last_dim, _reduce_scatter_along_last_dim in megatron/core/tensor_parallel).
at::Tensor whole_rows(const at::Tensor& columns, Communicator& group) {
  return at::cat(gather_sequence(columns, group).chunk(group.size(), 0), -1);
}

struct GatherLastDim : torch::autograd::Function<GatherLastDim> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const Group& group) {
    keep(context, group);
    return whole_rows(input, *group);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Group& group = kept<Group>(context);
    const at::Tensor by_rank = at::cat(gradients[0].chunk(group->size(), -1), 0);
    return {reduce_scatter_sequence(by_rank, *group), at::Tensor()};
  }
};

/// _GatherFromModelParallelRegion in megatron/core/tensor_parallel/mappings.py.
struct GatherColumns : torch::autograd::Function<GatherColumns> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const Group& group) {
    keep(context, group);
    return whole_rows(input, *group);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Group& group = kept<Group>(context);
    return {gradients[0].chunk(group->size(), -1)[group->index()].contiguous(), at::Tensor()};
  }
};

/// Sends part i to rank i; a list of tensors is copied to one before, and from one after the call.
std::vector<at::Tensor> exchanged(const std::vector<at::Tensor>& parts, Communicator& group) {
  const at::Tensor sent = at::stack(parts);
  const at::Tensor received = at::empty_like(sent);
  group.start_all_to_all(received, sent).wait();
  return received.unbind();
}

struct ColumnsToSequence : torch::autograd::Function<ColumnsToSequence> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& columns,
                            const Group& group) {
    keep(context, group);
    return at::cat(exchanged(columns.chunk(group->size(), 0), *group), -1);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Group& group = kept<Group>(context);
    return {at::cat(exchanged(gradients[0].chunk(group->size(), -1), *group), 0), at::Tensor()};
  }
};

/// DTensors have the batch before the sequence, and functional collectives know dim 0 alone: the
/// ranks' parts are cut and joined again before a reduce-scatter, and after an all-gather unless
/// there is one sequence (reduce_scatter_tensor() and all_gather_tensor() in
/// torch/distributed/_functional_collectives.py).
at::Tensor joined(const at::Tensor& whole, Communicator& group) {
  return at::cat(whole.chunk(group.size(), 0), 0);
}

bool has_other_rows(const at::Tensor& part, const Communicator& group) {
  return group.is_functional() && part.dim() > 2 && part.size(1) > 1;
}

}  // namespace

at::Tensor reduce_from_ranks(const at::Tensor& input, const Group& group) {
  return ReduceFromRanks::apply(input, group);
}

at::Tensor copy_to_ranks(const at::Tensor& input, const Group& group) {
  return CopyToRanks::apply(input, group);
}

at::Tensor reduce_scatter_to_sequence(const at::Tensor& input, const Group& group, Parts parts) {
  return ReduceScatterToSequence::apply(input, CutSequence{group, parts});
}

at::Tensor gather_from_sequence(const at::Tensor& input, const Group& group, Parts parts) {
  return GatherFromSequence::apply(input, CutSequence{group, parts});
}

at::Tensor gather_last_dim(const at::Tensor& input, const Group& group) {
  return GatherLastDim::apply(input, group);
}

at::Tensor gather_columns(const at::Tensor& input, const Group& group) {
  return GatherColumns::apply(input, group);
}

at::Tensor columns_to_sequence(const at::Tensor& columns, const Group& group) {
  return ColumnsToSequence::apply(columns, group);
}

at::Tensor scatter_to_sequence(const at::Tensor& input, const Group& group) {
  return ScatterToSequence::apply(input, group);
}

at::Tensor gather_sequence(const at::Tensor& part, Communicator& group, Parts parts) {
  std::vector<int64_t> shape = part.sizes().vec();
  shape[0] *= group.size();
  at::Tensor whole = at::empty(shape, part.options());
  if (parts == Parts::kOneTensor) {
    group.all_gather(whole, part.contiguous());
    return has_other_rows(part, group) ? joined(whole, group) : whole;
  }
  const at::Tensor flat = at::empty_like(whole);
  group.all_gather(flat, part.contiguous());
  return whole.copy_(flat);
}

at::Tensor reduce_scatter_sequence(const at::Tensor& whole, Communicator& group, Parts parts) {
  std::vector<int64_t> shape = whole.sizes().vec();
  shape[0] /= group.size();
  const at::Tensor input = parts == Parts::kList   ? whole.clone()
                           : group.is_functional() ? joined(whole, group)
                                                   : whole.contiguous();
  at::Tensor part = at::empty(shape, whole.options());
  group.reduce_scatter(part, input);
  return part;
}

}  // namespace models
