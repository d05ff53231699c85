// Whether `onerank exec` can run programs with the torch of a Python, and what they would lack.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/process/environment.h"
#include "sim/cli/process/interrupts.h"
#include "sim/cli/torch/program_torch.h"

namespace sim {

struct TorchNeed {
  bool is_met = false;
  std::string what;     ///< "NVIDIA's headers"
  std::string way_out;  ///< if it is not met
};

struct TorchCheck {
  ProgramTorch torch;
  std::vector<TorchNeed> needs;
};

/// Looks at the torch that the Python interpreter at `python` would import, without importing it,
/// and at this machine. Throws UserError when it is no Python or has no torch.
TorchCheck check_torch(const std::string& python,
                       const Environment& environment,
                       const Interrupts& interrupts);

}  // namespace sim
