// What the framework does on the host where the shard runs C++ alone.
//
// It is told in ranges, as profilers see them, whose names begin with estimator::kHostRange. What
// the functions of Python cost is a price (estimator/data/launch.json).
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <string>

namespace models {

/// The function of Python with this name begins. It has the name by which profilers see it: that of
/// autograd's function, or of the module.
void begin_python(const std::string& name);

/// When the backward of what made `output` begins, so does the function with this name. Nothing if
/// there is no such backward.
void begin_python_in_backward(const std::string& name, const at::Tensor& output);

/// run() as the function `name` of Python, and its backward as "<name>Backward", which autograd
/// calls its node. Null: as none.
template <class Run>
at::Tensor as_python(const char* name, const Run& run) {
  if (name == nullptr) return run();
  begin_python(name);
  at::Tensor output = run();
  begin_python_in_backward(std::string(name) + "Backward", output);
  return output;
}

/// The framework's host dispatches so many operators and nodes here besides those that the shard
/// runs, as Python does that calls each operator of a DTensor again for this rank's part of it.
void dispatch_on_host(int operators);

/// Python carries out each operator in the scope, and dispatches it again, as a TorchDispatchMode
/// does. Ends on the thread where it began.
class DispatchedAgain {
 public:
  DispatchedAgain();

 private:
  at::RecordFunction watch_{at::RecordScope::USER_SCOPE};
};

}  // namespace models
