// What `onerank exec` puts into a program is made for one build of torch: NVIDIA's libraries as
// that torch needs them, and a recorder that is compiled against its headers.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/cli/process/environment.h"
#include "sim/cli/process/interrupts.h"
#include "sim/cli/process/program_torch.h"

namespace sim {

/// A torch that programs have been run with.
struct SupportedTorch {
  std::string release;     ///< "2.11.0"
  int64_t cuda = 0;        ///< major version, 13
  std::string tested;      ///< what was run with it
  bool built_for = false;  ///< Onerank was: ranks of a plan run with it
};
template <class Visitor>
void visit_fields(Visitor& visit, SupportedTorch& torch) {
  visit("torch", torch.release, "its release");
  visit("cuda", torch.cuda, "major version of CUDA that it is built for");
  visit("tested", torch.tested, "what was run with it");
  visit("built_for", torch.built_for, "Onerank was built for it: ranks of a plan run with it");
}
const std::vector<SupportedTorch>& supported_torch();

/// The folder that holds virtual_gpu/ and exec/ for this torch: the program's own for the torch
/// that Onerank was built for. For another one that works they are made at first use, by CMake and
/// a compiler, which takes minutes, and are kept below the user's folder for caches; a change of
/// Onerank's sources makes them anew. Throws UserError (this machine lacks it) for a torch that is
/// not known to work, or when they cannot be made.
std::filesystem::path stubs_for(const ProgramTorch& torch,
                                const Environment& environment,
                                const Interrupts& interrupts);

}  // namespace sim
