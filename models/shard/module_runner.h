// Runs the modules of a model, where the engine of the data ranks has to know when each of them
// runs: it has their parameters only while they do (DeepSpeed's ZeRO stage 3).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "models/shard/parameters.h"

namespace models {

class ModuleRunner {
 public:
  using Body = std::function<at::Tensor(const at::Tensor&)>;

  virtual ~ModuleRunner() = default;
  /// body(input), which reads the parameters. `module` tells one module from the others, also where
  /// two of them share parameters.
  virtual at::Tensor run(const void* module,
                         const ParameterList& parameters,
                         const at::Tensor& input,
                         const Body& body) = 0;
};

/// The same with a runner that may be null.
inline at::Tensor in_module(ModuleRunner* runner,
                            const void* module,
                            const ParameterList& parameters,
                            const at::Tensor& input,
                            const ModuleRunner::Body& body) {
  return runner == nullptr ? body(input) : runner->run(module, parameters, input, body);
}

}  // namespace models
