// The torch that a program will import.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/process/environment.h"
#include "sim/cli/process/interrupts.h"

namespace sim {

struct ProgramTorch {
  std::filesystem::path folder;  ///< the package, with lib/ and include/
  std::string version;           ///< "2.11.0+cu130"
  std::string build;             ///< of torch's repository, a commit; "" if it does not say
};

/// Whether the command is a Python and its arguments, so that its torch can be told before it runs.
bool is_python(const std::vector<std::string>& command);

/// "2.11.0+cu13" of "2.11.0+cu130": a wheel's release, and the CUDA whose libraries it names. Of
/// another torch, the whole version.
std::string kind_of(const std::string& version);

/// Whether this version is of the kind that Onerank was built for.
bool is_built_for(const std::string& version);

/// The torch package in `folder`, as its version.py tells; nothing when there is none.
std::optional<ProgramTorch> torch_in(const std::filesystem::path& folder);

/// Asks the Python that the command starts with where it finds torch, which is not imported.
/// Nothing when the command does not start with a Python, or when that has no torch.
std::optional<ProgramTorch> find_program_torch(const std::vector<std::string>& command,
                                               const Environment& environment,
                                               const Interrupts& interrupts);

}  // namespace sim
