// The part of a layer between its second norm and its residual: an MLP, or a mixture of experts.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <utility>

namespace models {

/// What experts are balanced by once in a step.
struct ExpertBalance {
  at::Tensor bias;    ///< fp32 [experts], added to scores for the choice alone
  at::Tensor tokens;  ///< fp32 [experts]: of each, since the last step
};

class FeedForward {
 public:
  virtual ~FeedForward() = default;
  /// [s or s/t, b, h] -> the same shape. The output bias is not added yet; see bias(). An MLP lets
  /// go of an input that is given away when its first product is there.
  virtual at::Tensor forward(at::Tensor input) const = 0;
  /// The same in two steps, forward(x) = finish(begin(x)), of which the second keeps nothing for
  /// its backward. `rest`, if given, gets the first one's result while what it was made from lives.
  using Rest = std::function<void(const at::Tensor&)>;
  virtual at::Tensor begin(at::Tensor input, const Rest& rest = {}) const {
    at::Tensor output = forward(std::move(input));
    if (rest) rest(output);
    return output;
  }
  virtual at::Tensor finish(const at::Tensor& begun) const { return begun; }
  /// Null where nothing is balanced between steps.
  virtual const ExpertBalance* balance() const { return nullptr; }
  /// The bias that the caller must add, or an undefined tensor.
  virtual at::Tensor bias() const = 0;
};

}  // namespace models
