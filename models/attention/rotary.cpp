#include "models/attention/rotary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <torch/csrc/autograd/custom_function.h>

#include "models/shard/kernel_scope.h"

namespace models {

/// Two writes of each half, no temporary.
at::Tensor rotate(const at::Tensor& input, const RotaryTables& tables, int sign) {
  return as_kernel("fused_rope", {input, tables.cos, tables.sin}, [&] {
    const int64_t half = tables.cos.size(-1) / 2;
    const at::Tensor first = input.narrow(-1, 0, half);
    const at::Tensor second = input.narrow(-1, half, half);
    at::Tensor output = input.clone();
    output.narrow(-1, 0, 2 * half).mul_(tables.cos);
    output.narrow(-1, 0, half).addcmul_(second, tables.sin.narrow(-1, 0, half), -sign);
    output.narrow(-1, half, half).addcmul_(first, tables.sin.narrow(-1, half, half), sign);
    return output;
  });
}

void rotate_in_place(const at::Tensor& input, const RotaryTables& tables, int sign) {
  KernelScope kernel("fused_rope");
  const int64_t half = input.size(-1) / 2;
  at::Tensor first = input.narrow(-1, 0, half);
  at::Tensor second = input.narrow(-1, half, half);
  const at::Tensor before = first.clone();
  first.mul_(tables.cos.narrow(-1, 0, half))
      .addcmul_(second, tables.sin.narrow(-1, 0, half), -sign);
  second.mul_(tables.cos.narrow(-1, half, half))
      .addcmul_(before, tables.sin.narrow(-1, half, half), sign);
  kernel.moves({input, tables.cos, tables.sin}, input);
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct FusedRotary : torch::autograd::Function<FusedRotary> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const at::Tensor& cos,
                            const at::Tensor& sin) {
    context->save_for_backward({cos, sin});
    return rotate(input, {cos, sin}, +1);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    return {rotate(gradients[0], {saved[0], saved[1]}, -1), at::Tensor(), at::Tensor()};
  }
};

/// The memory stays the input's. A fused kernel needs no temporary; here there is one of its size.
struct InPlaceRotary : torch::autograd::Function<InPlaceRotary> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& input,
                            const at::Tensor& cos,
                            const at::Tensor& sin) {
    context->save_for_backward({cos, sin});
    input.detach().copy_(rotate(input, {cos, sin}, +1));
    return input;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    return {rotate(gradients[0], {saved[0], saved[1]}, -1), at::Tensor(), at::Tensor()};
  }
};

/// [width / 2], fp32.
at::Tensor inverse_frequencies(int64_t width, double base, const at::TensorOptions& options) {
  const at::TensorOptions fp32 = options.dtype(at::kFloat);
  const at::Tensor exponents = at::arange(0, width, 2, fp32) / static_cast<double>(width);
  return at::pow(base, -exponents);
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(const ShardContext& context, double base)
    : RotaryEmbedding(context,
                      base,
                      context.plan.model.rotary_width(),
                      context.framework().fused_rotary && context.plan.training.rope_fusion) {}

RotaryEmbedding::RotaryEmbedding(
    const ShardContext& context, double base, int64_t width, bool fused, bool keeps_angles)
    : observer_(context.observer),
      options_(context.parameter_options()),
      place_(context.context_place()),
      sequence_(context.plan.sequence_length()),
      width_(width),
      base_(base),
      fused_(fused),
      complex_(context.framework().complex_rotary && !context.torchtitan_qwen3()),
      is_argument_(context.torchtitan_qwen3()),
      casts_argument_(context.plan.fully_sharded()),
      from_angles_(context.framework().fused_rotary && !fused),
      keeps_angles_(keeps_angles),
      in_each_forward_(context.framework().rotary_made == estimator::RotaryMade::kInEachForward) {
  if (in_each_forward_) frequencies_ = inverse_frequencies(width_, base_, options_);
}

RotaryTables RotaryEmbedding::make_tables() const {
  const at::TensorOptions fp32 = options_.dtype(at::kFloat);
  const at::Tensor frequencies = inverse_frequencies(width_, base_, options_);
  const at::Tensor angles = at::outer(at::arange(sequence_, fp32), frequencies);
  if (complex_) {
    const at::Tensor own = own_chunks(angles, 0, place_).unsqueeze(1).unsqueeze(1);
    return {.cos = {}, .sin = {}, .rotations = at::polar(at::ones_like(own), own)};
  }
  const at::Tensor both =
      own_chunks(at::cat({angles, angles}, -1), 0, place_).unsqueeze(1).unsqueeze(1);
  if (from_angles_) return {.cos = {}, .sin = {}, .angles = both};
  if (is_argument_) return halves_of(at::cat({both.cos(), both.sin()}, -1));
  if (keeps_angles_) {
    return {.cos = both.cos().to(options_.dtype()),
            .sin = both.sin().to(options_.dtype()),
            .angles = both};
  }
  const at::Tensor block = at::empty({2, both.size(0), 1, 1, width_}, options_);
  block.select(0, 0).copy_(both.cos());
  block.select(0, 1).copy_(both.sin());
  return {.cos = block.select(0, 0), .sin = block.select(0, 1)};
}

RotaryTables RotaryEmbedding::halves_of(const at::Tensor& both) const {
  return {.cos = both.narrow(-1, 0, width_), .sin = both.narrow(-1, width_, width_), .both = both};
}

at::Tensor RotaryEmbedding::argument_of_layer() const {
  if (!is_argument_) return {};
  return casts_argument_ ? tables().both.to(options_.dtype()) : tables().both;
}

void RotaryEmbedding::take_argument(const at::Tensor& argument) const {
  *of_layer_ = argument.defined() ? halves_of(argument) : RotaryTables{};
}

/// LlamaRotaryEmbedding.forward in models/llama/modeling_llama.py of transformers, whose factor
/// (attention_scaling) is 1. Between forwards the last ones stay: autograd, or a checkpoint, holds
/// them until the backward is over anyhow.
RotaryTables RotaryEmbedding::tables_of_forward() const {
  const at::Tensor positions = at::arange(sequence_, options_.dtype(at::kLong)).to(at::kFloat);
  const at::Tensor angles = at::outer(positions, frequencies_);
  const at::Tensor both = at::cat({angles, angles}, -1).unsqueeze(1).unsqueeze(1);
  return {.cos = (both.cos() * 1.0).to(options_.dtype()),
          .sin = (both.sin() * 1.0).to(options_.dtype())};
}

void RotaryEmbedding::begin_forward() const {
  if (!in_each_forward_) {
    tables();
    return;
  }
  *tables_ = {};
  *tables_ = tables_of_forward();
}

const RotaryTables& RotaryEmbedding::tables() const {
  const bool is_made =
      tables_->cos.defined() || tables_->angles.defined() || tables_->rotations.defined();
  if (is_made) return *tables_;
  *tables_ = make_tables();
  for (const at::Tensor& table :
       {tables_->cos, tables_->sin, tables_->angles, tables_->rotations}) {
    if (!table.defined() || table.storage_offset() > 0) continue;
    observer_.memory_lasts(table, {estimator::MemoryCategory::kWorkspace, "rotary_embedding", ""});
  }
  return *tables_;
}

at::Tensor RotaryEmbedding::apply_in_place(const at::Tensor& input) const {
  return InPlaceRotary::apply(input, tables().cos, tables().sin);
}

namespace {

/// (x1, x2) -> (-x2, x1) of halves.
at::Tensor rotated_half(const at::Tensor& input) {
  const int64_t half = input.size(-1) / 2;
  return at::cat({-input.narrow(-1, half, half), input.narrow(-1, 0, half)}, -1);
}

at::Tensor turned(const at::Tensor& input, const at::Tensor& cos, const at::Tensor& sin) {
  const at::Tensor across = rotated_half(input);
  return input * cos + across * sin;
}

}  // namespace

/// _apply_rotary_pos_emb_bshd in megatron/core/models/common/embeddings/rope_utils.py.
at::Tensor RotaryEmbedding::apply_angles(const at::Tensor& input) const {
  const at::Tensor& angles = tables().angles;
  const at::Tensor part = input.narrow(-1, 0, width_);
  const at::Tensor rest = input.narrow(-1, width_, input.size(-1) - width_);
  const at::Tensor cos = (angles.cos() * 1.0).to(options_.dtype());  // times mscale
  const at::Tensor sin = (angles.sin() * 1.0).to(options_.dtype());
  at::Tensor sum = part * cos;
  at::Tensor across = rotated_half(part);
  across = across * sin;
  sum = sum + across;
  across.reset();
  return at::cat({sum, rest}, -1);
}

at::Tensor RotaryEmbedding::apply(const at::Tensor& input) const {
  if (complex_ && input.size(-1) == width_) {
    const at::Tensor pairs =
        at::view_as_complex(input.to(at::kFloat).unflatten(-1, at::IntArrayRef{-1, 2}));
    return at::view_as_real(pairs * tables().rotations).flatten(-2).to(input.scalar_type());
  }
  if (fused_) return FusedRotary::apply(input, tables().cos, tables().sin);
  if (from_angles_) return apply_angles(input);
  if (input.size(-1) > width_) {
    const auto parts = input.split_with_sizes({width_, input.size(-1) - width_}, -1);
    return at::cat({apply(parts[0]), parts[1]}, -1);
  }
  if (!is_argument_) return turned(input, tables().cos, tables().sin);
  const c10::ScalarType type = input.scalar_type();
  return turned(input, of_layer_->cos.to(type), of_layer_->sin.to(type));
}

}  // namespace models
