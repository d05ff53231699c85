// Connects libtorch's operators and autograd nodes with the tracker of the thread that runs them.
#pragma once

#include <ATen/record_function.h>

namespace sim {

/// While it lives, libtorch calls the tracker of the thread for each operator and each autograd
/// node. Create and destroy it while no operator runs.
class OperatorCallbacks {
 public:
  OperatorCallbacks();
  ~OperatorCallbacks();
  OperatorCallbacks(const OperatorCallbacks&) = delete;
  OperatorCallbacks& operator=(const OperatorCallbacks&) = delete;

 private:
  at::CallbackHandle operators_;
  at::CallbackHandle nodes_;
};

}  // namespace sim
