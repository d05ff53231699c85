// Python that a call of the framework runs on the host, where the shard runs C++ alone.
//
// The shard tells the name of the call; what it costs is a price (estimator/data/launch.json). The
// name is that of the function of autograd that Python calls, by which profilers see it, too, and
// its backward has the name that autograd gives its node.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/shard/observer.h"

namespace models {

/// When the backward of what made `output` begins, so does the range with this name. Nothing if
/// there is no such backward.
void begin_range_in_backward(Observer& observer, const std::string& name, const at::Tensor& output);

/// run() as the function `function` of Python, and its backward as "<function>Backward". Null: as
/// none.
template <class Run>
at::Tensor in_range(Observer& observer, const char* function, const Run& run) {
  if (function == nullptr) return run();
  observer.begin_range(function);
  at::Tensor output = run();
  begin_range_in_backward(observer, std::string(function) + "Backward", output);
  return output;
}

}  // namespace models
