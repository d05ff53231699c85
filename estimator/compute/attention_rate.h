// How fast a GPU runs a fused attention kernel: published rates (data/attention.json).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/tagged.h"
#include "estimator/compute/matmul_rate.h"
#include "estimator/hardware/hardware.h"
#include "estimator/plan/plan.h"

namespace estimator {

enum class AttentionPass { kForward, kBackward };
constexpr std::array<EnumName<AttentionPass>, 2> enum_names(AttentionPass) {
  return {{{AttentionPass::kForward, "forward"}, {AttentionPass::kBackward, "backward"}}};
}

/// The kernel that runs the attention.
struct AttentionKernel {
  Attention attention = Attention::kFlash;
  bool deterministic = false;                  ///< the backward adds in a fixed order
  bool dropout = false;                        ///< of a plan: each call drops out some weights
  int64_t key_width = 128, value_width = 128;  ///< of the model's heads, for a report
  bool by_call = false;  ///< of a program: each call has the rates of its operator and of its mask
};

struct AttentionShape {
  AttentionPass pass = AttentionPass::kForward;
  int64_t batch = 1, heads = 1, sequence = 1, head_width = 128;
  int64_t value_width = 0;         ///< of a value's head; 0: as wide as the key's
  bool masked = true;              ///< causal: half of the FLOPs
  bool is_fp32 = false;            ///< fp32 queries, keys and values
  bool is_quantized = false;       ///< in 8 bits, with a scale for 32 elements
  std::string operator_name = {};  ///< of the call; "": not known
};

/// FLOP per second by sequence length, for one kernel, pass and head width (of keys and of values).
struct AttentionCurve {
  std::string kernel;
  std::optional<Attention> attention;
  std::optional<ProductScaling> scaling;
  std::vector<std::string> operators;
  std::vector<std::string> gpus;
  std::string measured_on;
  std::vector<AttentionPass> passes;
  bool masked = true;
  int64_t head_width = 0;
  std::optional<int64_t> value_width;
  std::vector<int64_t> sequence;
  std::vector<double> teraflops;
  double half_occupied_at_waves = 0;
  std::optional<double> fp32_share;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, AttentionCurve& row) {
  visit("kernel", row.kernel, "whose kernel");
  visit("attention", row.attention, "the plan's word for it; empty: any");
  visit("scaling", row.scaling, "in 8 bits: what has a scale of its own; empty: not in 8 bits");
  visit("operators", row.operators, "of PyTorch, which it is for alone; the names' beginnings");
  visit("gpus", row.gpus, "GPUs that it is used for");
  visit("measured_on", row.measured_on, "the GPU of the measurement");
  visit("passes", row.passes, "forward, backward; both: measured together");
  visit("masked", row.masked, "with a causal mask");
  visit("head_width", row.head_width, "of queries and keys: kv_channels");
  visit("value_width", row.value_width, "of values; empty: the same");
  visit("sequence", row.sequence, "tokens");
  visit("teraflops", row.teraflops, "rate at each sequence, causal FLOPs counted half");
  visit("half_occupied_at_waves",
        row.half_occupied_at_waves,
        "waves of blocks at which half of the rate is reached; 0: measured with many");
  visit("fp32_share",
        row.fp32_share,
        "of this rate that fp32 reaches; empty: by three products of TF32 for each");
  visit("source", row.source, "where it was read");
}

struct AttentionRate {
  double flops_per_second = 0;
  Source source = Source::kAssumed;
  std::string note;
};

/// The rate from the curve with the nearest head widths; the note names them if they differ from
/// the call's. A call without a mask has the rate of a causal one, unless the kernel is
/// priced `by_call` and a rate is published. Then the call's operator decides, too, where it was
/// measured on this GPU, and else cuDNN's calls are `fused`; those of flex_attention are
/// FlashAttention-2's times the share of flex_attention.h. It is interpolated between the measured
/// sequence lengths and constant outside them. A GPU with another peak than the measured one
/// reaches the same share of its own peak. If nothing is published for a GPU, A100's share is
/// assumed. A deterministic backward is slower by the factor in data/deterministic_attention.json,
/// and dropout of a plan by that of attention_extras.h.
/// Attention of fp32 operands, which PyTorch's memory-efficient kernels alone have, multiplies by
/// three products of TF32, or on the fp32 units where there is none: as much slower.
AttentionRate attention_rate(const Gpu& gpu,
                             const AttentionShape& shape,
                             const AttentionKernel& kernel = {});

}  // namespace estimator
