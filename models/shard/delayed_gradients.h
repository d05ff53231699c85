// Products for weights' gradients that layers put off in their backward (WeightGradStore in
// transformer_engine/pytorch/module/_common.py).
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "models/shard/observer.h"

namespace models {

class DelayedGradients {
 public:
  struct Product {
    std::string module;  ///< path of the layer, as that of its parameters
    std::function<void()> run;
  };

  void add(Product product) { waiting_.push_back(std::move(product)); }
  /// All that wait, in the order of their backward.
  std::vector<Product> take_all() { return std::exchange(waiting_, {}); }

 private:
  std::vector<Product> waiting_;
};

/// Runs them, each in its module. What they hold is freed one by one.
void run_delayed(std::vector<DelayedGradients::Product> products, Observer& observer);

}  // namespace models
