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
  std::string cuda;              ///< that it is built for, "13.0"; "" if for none
  std::string build;             ///< commit of torch's repository; "" if not known
};

/// Whether the command starts a Python interpreter, so that its torch can be found before it runs.
bool is_python(const std::vector<std::string>& command);

/// The release and the major CUDA version of a wheel: "2.11.0+cu13" for "2.11.0+cu130". For any
/// other torch it is the whole version.
std::string kind_of(const std::string& version);

/// "2.11" of "2.11.0+cu130", and of builds that are no wheels, "2.11.0a0+ee90f2d"; "" if it starts
/// otherwise.
std::string release_of(const std::string& version);

/// Whether this version has the kind for which Onerank was built.
bool is_built_for(const std::string& version);

/// The torch package in `folder`, read from its version.py; empty when there is none.
std::optional<ProgramTorch> torch_in(const std::filesystem::path& folder);

/// Asks the Python interpreter of the command where it finds torch, without importing torch. Empty
/// when the command does not start a Python interpreter, or when it has no torch.
std::optional<ProgramTorch> find_program_torch(const std::vector<std::string>& command,
                                               const Environment& environment,
                                               const Interrupts& interrupts);

}  // namespace sim
