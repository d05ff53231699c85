#include "models/attention/latent_rotary.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/shard/kept_value.h"
#include "models/shard/kernel_scope.h"

namespace models {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Buffers = std::shared_ptr<FrameworkBuffers>;

/// The part with positions, of a head that is `width` wide without it.
at::Tensor positions_of(const at::Tensor& heads, int64_t width) {
  return heads.narrow(-1, width, heads.size(-1) - width);
}

struct FusedQueryRotary : torch::autograd::Function<FusedQueryRotary> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& query,
                            const at::Tensor& cos,
                            const at::Tensor& sin,
                            int64_t width,
                            const Buffers& buffers) {
    context->save_for_backward({cos, sin});
    context->saved_data["width"] = width;
    keep(context, buffers);
    buffers->tune_at_first_call("rotate queries", query.device(), query);
    rotate_in_place(positions_of(query.detach(), width), {cos, sin}, +1);
    return query;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor gradient = gradients[0].contiguous();
    const int64_t width = context->saved_data["width"].toInt();
    kept<Buffers>(context)->tune_at_first_call(
        "rotate gradients of queries", gradient.device(), gradient);
    rotate_in_place(positions_of(gradient, width), {saved[0], saved[1]}, -1);
    return {gradient, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

struct FusedKeyRotary : torch::autograd::Function<FusedKeyRotary> {
  static variable_list forward(AutogradContext* context,
                               const at::Tensor& key_value,
                               const at::Tensor& position_key,
                               const at::Tensor& cos,
                               const at::Tensor& sin,
                               int64_t width,
                               const Buffers& buffers) {
    context->save_for_backward({cos, sin});
    context->saved_data["width"] = width;
    keep(context, buffers);
    std::vector<int64_t> shape = key_value.sizes().vec();
    shape.back() = width + position_key.size(-1);
    variable_list key_and_value =
        as_kernel("fused_mla_rope", {key_value, position_key, cos, sin}, [&] {
          const at::Tensor key = at::empty(shape, key_value.options());
          key.narrow(-1, 0, width).copy_(key_value.narrow(-1, 0, width));
          positions_of(key, width).copy_(rotate(position_key.unsqueeze(2), {cos, sin}, +1));
          return variable_list{key, positions_of(key_value, width).clone()};
        });
    buffers->tune_at_first_call("rotate keys", key_value.device());
    return key_and_value;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const int64_t width = context->saved_data["width"].toInt();
    const at::Tensor& key = gradients[0];
    const at::Tensor& value = gradients[1];
    std::vector<int64_t> shape = key.sizes().vec();
    shape.back() = width + value.size(-1);
    KernelScope kernel("fused_mla_rope");
    const at::Tensor key_value = at::empty(shape, key.options());
    key_value.narrow(-1, 0, width).copy_(key.narrow(-1, 0, width));
    positions_of(key_value, width).copy_(value);
    const at::Tensor position_key = positions_of(key, width).sum(2, /*keepdim=*/true);
    kept<Buffers>(context)->tune_at_first_call("rotate gradients of keys", key.device());
    rotate_in_place(position_key, {saved[0], saved[1]}, -1);
    kernel.moves({key, value, saved[0], saved[1]}, {key_value, position_key});
    return {
        key_value, position_key.squeeze(2), at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

// Each layer has its own tables, and the cache of its forward keeps the angles that they were made
// of (YarnRotaryEmbedding in megatron/core/models/common/embeddings/yarn_rotary_pos_embedding.py).
// Megatron-LM fuses rotary positions where it has no others (validate_args in arguments.py).
LatentRotary::LatentRotary(const ShardContext& context)
    : fused_(context.framework().fused_rotary && context.plan.training.rope_fusion &&
             context.plan.model.position_embedding == estimator::PositionEmbedding::kRope),
      gathers_pairs_(context.framework().fused_rotary && !fused_),
      key_width_(context.plan.model.qk_head_dim),
      value_width_(context.plan.model.v_head_dim),
      buffers_(context.buffers),
      rotary_(context,
              context.plan.model.rotary_base,
              context.plan.model.qk_pos_emb_head_dim,
              fused_,
              /*keeps_angles=*/fused_) {
  if (context.framework().rotary_made == estimator::RotaryMade::kWithModel) prepare();
}

/// Megatron-LM's operators gather the pairs into halves first, which is a copy.
at::Tensor LatentRotary::turn(const at::Tensor& input) const {
  if (!gathers_pairs_) return rotary_.apply(input);
  const auto halves = input.chunk(2, -1);
  return rotary_.apply(at::cat(halves, -1));
}

variable_list LatentRotary::apply(const at::Tensor& query,
                                  const at::Tensor& key_value,
                                  const at::Tensor& position_key) const {
  if (fused_) {
    const RotaryTables& tables = rotary_.tables();
    const at::Tensor turned =
        FusedQueryRotary::apply(query, tables.cos, tables.sin, key_width_, buffers_);
    const variable_list key = FusedKeyRotary::apply(
        key_value, position_key, tables.cos, tables.sin, key_width_, buffers_);
    return {turned, key[0], key[1]};
  }
  const at::Tensor own_part = query.narrow(-1, 0, key_width_);
  const at::Tensor turned = turn(positions_of(query, key_width_));
  const at::Tensor shared = turn(position_key.unsqueeze(2)).expand({-1, -1, query.size(2), -1});
  const auto parts = key_value.split_with_sizes({key_width_, value_width_}, -1);
  return {at::cat({own_part, turned}, -1), at::cat({parts[0], shared}, -1), parts[1].contiguous()};
}

}  // namespace models
