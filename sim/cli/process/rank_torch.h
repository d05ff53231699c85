// The torch that ranks of a plan run with.
#pragma once

#include <filesystem>
#include <optional>

#include "sim/cli/process/environment.h"
#include "sim/cli/process/interrupts.h"

namespace sim {

/// The folder of the torch package for the rank process: the one that ONERANK_TORCH_DIR names; or
/// the first that is of the version that Onerank was built for, of: the torch of the Python on
/// PATH, of the Python beside `onerank`, and the one that Onerank was built with. Nothing for a
/// program in the folder that it was built in, whose rank process knows its torch. Throws
/// UserError: bad input where ONERANK_TORCH_DIR names no torch, this machine lacks it where there
/// is none.
std::optional<std::filesystem::path> rank_torch(const Environment& environment,
                                                const Interrupts& interrupts);

}  // namespace sim
