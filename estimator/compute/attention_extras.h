// How much longer a fused attention kernel takes that adds a tensor to its scores or drops out some
// of its weights (data/attention_extras.json). Both are work of the multiprocessors.
#pragma once

#include <string>

namespace estimator {

struct AttentionExtras {
  bool mask = false;     ///< a tensor is added to the scores: a mask of tokens or a bias
  bool dropout = false;  ///< of the weights
};

/// Over the time without them; 1 for operators of which nothing is known. `operator_name` is
/// PyTorch's, of the forward or of the backward.
double attention_slowdown(const std::string& operator_name, const AttentionExtras& extras);

}  // namespace estimator
