// How TransformerEngine's linear layers quantize what they multiply (--fp8-format, --fp4-format):
// one row for each recipe.
#pragma once

#include "estimator/plan/plan.h"

namespace estimator {

struct QuantizationTraits {
  int64_t bits = 16;           ///< of an element that is multiplied; 16: nothing is quantized
  int64_t block = 0;           ///< elements that a product sums, of one scale; 0: a tensor has one
  bool finds_scale = true;     ///< from the tensor itself, not from earlier iterations
  bool scales_tensor = false;  ///< its largest element gives a scale of all of it
  bool transposes = false;     ///< products along columns read a transposed matrix
  /// Scales of blocks are numbers in fp32, those of a weight for squares of blocks; else bytes.
  bool fp32_scales = false;
  /// New weights are gathered in 16 bits, and then quantized; else as they are kept.
  bool gathers_in_16_bits = false;
  int64_t token_multiple = 1;     ///< of what a rank multiplies
  int64_t column_multiple = 1;    ///< of a rank's matrices
  int64_t gathered_multiple = 1;  ///< of both where tensor ranks gather a sequence
  int64_t expert_rows = 1;        ///< rows of each expert are padded to a multiple of it
  double first_gpu = 8.9;         ///< compute capability from which products are of this recipe
  double end_gpu = 1000;          ///< ... and from which they are no longer
  bool weights_alone = true;      ///< weights may be kept quantized alone
};

const QuantizationTraits& quantization_of(const TrainingConfig& training);
inline bool quantizes(const TrainingConfig& training) {
  return quantization_of(training).bits < 16;
}

/// Whether the weights of these layers are quantized alone, and are gathered so.
inline bool keeps_weights_quantized(const TrainingConfig& training) {
  return training.fp8_param_gather || training.fp4_param_gather;
}

/// "training.fp8_format = hybrid": the one that is not none.
std::string quantized_format(const TrainingConfig& training);

/// Whether layers multiply in 8 bits by the recipe mxfp8.
bool multiplies_in_mxfp8(const TrainingConfig& training);

}  // namespace estimator
