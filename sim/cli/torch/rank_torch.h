// Finds the torch with which ranks of a plan run.
#pragma once

#include <filesystem>
#include <optional>

#include "sim/cli/process/environment.h"
#include "sim/cli/process/interrupts.h"

namespace sim {

/// The folder of the torch package for the rank process. It is the one that ONERANK_TORCH_DIR
/// names, or else the first of these that has the version for which Onerank was built: the torch of
/// the Python on PATH, the torch of the Python beside `onerank`, and the torch with which Onerank
/// was built. Empty for a program in its build folder, whose rank process knows its torch. Throws
/// UserError: bad input if ONERANK_TORCH_DIR names no torch, and "this machine lacks something" if
/// none is found.
std::optional<std::filesystem::path> rank_torch(const Environment& environment,
                                                const Interrupts& interrupts);

}  // namespace sim
