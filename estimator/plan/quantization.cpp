#include "estimator/plan/quantization.h"

#include <fmt/format.h>

namespace estimator {
namespace {

constexpr QuantizationTraits kIn16Bits;

/// Multiples of tokens and columns: assert_dim_for_fp8_exec in transformer_engine/pytorch/utils.py,
/// is_quantizable in tensor/mxfp8_tensor.py and nvfp4_tensor.py. GPUs: check_fp8_support and
/// check_mxfp8_support in quantization.py. Rows of experts:
/// get_align_size_for_quantization in megatron/core/transformer/moe/moe_utils.py.
constexpr QuantizationTraits kDelayed{.bits = 8,
                                      .finds_scale = false,
                                      .scales_tensor = true,
                                      .token_multiple = 8,
                                      .column_multiple = 16,
                                      .expert_rows = 16};
constexpr QuantizationTraits kTensorwise{.bits = 8,
                                         .scales_tensor = true,
                                         .token_multiple = 8,
                                         .column_multiple = 16,
                                         .expert_rows = 16};
constexpr QuantizationTraits kMxfp8{.bits = 8,
                                    .block = 32,
                                    .gathers_in_16_bits = true,
                                    .token_multiple = 32,
                                    .column_multiple = 32,
                                    .expert_rows = 32,
                                    .first_gpu = 10,
                                    .end_gpu = 12};
/// Float8BlockQuantizer in tensor/float8_blockwise_tensor.py; only whole blocks of tokens are
/// gathered in 8 bits (is_quantizable). On Blackwell TransformerEngine multiplies as by mxfp8.
constexpr QuantizationTraits kBlockwise{.bits = 8,
                                        .block = 128,
                                        .transposes = true,
                                        .fp32_scales = true,
                                        .token_multiple = 8,
                                        .column_multiple = 16,
                                        .gathered_multiple = 128,
                                        .expert_rows = 16,
                                        .first_gpu = 9,
                                        .end_gpu = 10,
                                        .weights_alone = false};
constexpr QuantizationTraits kNvfp4{.bits = 4,
                                    .block = 16,
                                    .scales_tensor = true,
                                    .transposes = true,
                                    .token_multiple = 16,
                                    .column_multiple = 16,
                                    .expert_rows = 128};

constexpr const QuantizationTraits& traits_of(Fp8Recipe recipe) {
  switch (recipe) {
    case Fp8Recipe::kDelayed:
      return kDelayed;
    case Fp8Recipe::kTensorwise:
      return kTensorwise;
    case Fp8Recipe::kBlockwise:
      return kBlockwise;
    default:
      return kMxfp8;
  }
}

}  // namespace

const QuantizationTraits& quantization_of(const TrainingConfig& training) {
  if (training.fp4_format != Fp4Format::kNone) return kNvfp4;
  return training.fp8_format == Fp8Format::kNone ? kIn16Bits : traits_of(training.fp8_recipe);
}

std::string quantized_format(const TrainingConfig& training) {
  if (training.fp4_format != Fp4Format::kNone) {
    return fmt::format("training.fp4_format = {}", to_string(training.fp4_format));
  }
  return fmt::format("training.fp8_format = {}", to_string(training.fp8_format));
}

bool multiplies_in_mxfp8(const TrainingConfig& training) {
  return training.fp8_format != Fp8Format::kNone && training.fp8_recipe == Fp8Recipe::kMxfp8;
}

}  // namespace estimator
