#include "sim/cli/torch/rank_torch.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "estimator/base/errors.h"
#include "estimator/base/text.h"
#include "sim/cli/torch/installation.h"
#include "sim/cli/torch/program_torch.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::ExitCode;
using estimator::UserError;

constexpr const char* kLibrary = "lib/libtorch_cpu.so";

fs::path given_torch(const std::string& folder) {
  if (fs::exists(fs::path(folder) / kLibrary)) return folder;
  throw UserError(
      {.what = "there is no torch in the folder that a variable names",
       .where = fmt::format("{}={}", kTorchVariable, folder),
       .help = "give the folder `torch` of the package, which holds lib/ and include/"});
}

/// Of the version that it was built for, and with its libraries.
bool can_be_used(const std::optional<ProgramTorch>& torch) {
  return torch && is_built_for(torch->version) && fs::exists(torch->folder / kLibrary);
}

/// The Pythons to ask: the one on PATH, and the one beside `onerank` if there is one.
std::vector<std::string> pythons(const fs::path& programs) {
  std::vector<std::string> asked = {"python3"};
  if (fs::exists(programs / "python3")) asked.push_back((programs / "python3").string());
  return asked;
}

/// `programs` is the folder of `onerank`. Only Python's package has onerank-setup.
std::string help_for_no_torch(const fs::path& programs) {
  const std::string way = fs::exists(programs / "onerank-setup")
                              ? "run onerank-setup"
                              : fmt::format("run `python3 -m pip install torch=={}`",
                                            estimator::split(ONERANK_TORCH_VERSION, '+').front());
  return fmt::format("{}, which installs it, or set {} to the folder of one", way, kTorchVariable);
}

std::string told(const std::string& place, const std::optional<ProgramTorch>& torch) {
  if (!torch) return fmt::format("{}: none", place);
  return fmt::format("{}: {} in {}", place, torch->version, torch->folder.string());
}

}  // namespace

std::optional<fs::path> rank_torch(const Environment& environment, const Interrupts& interrupts) {
  if (const auto given = find_variable(environment, kTorchVariable)) return given_torch(*given);
  if (!is_installed()) return std::nullopt;
  const fs::path programs = parts_folder().parent_path().parent_path() / "bin";
  std::vector<std::string> seen;
  std::set<fs::path> folders;  // Python on PATH and Python beside `onerank` are often the same
  for (const std::string& python : pythons(programs)) {
    const auto torch = find_program_torch({python}, environment, interrupts);
    if (can_be_used(torch)) return torch->folder;
    if (!torch || folders.insert(torch->folder).second) seen.push_back(told(python, torch));
  }
  const auto torch = torch_in(built_with().torch);
  if (can_be_used(torch)) return torch->folder;
  seen.push_back(told("built with", torch));
  throw UserError(
      {.what = fmt::format("there is no torch {} to run a rank with", ONERANK_TORCH_VERSION),
       .where = fmt::format("{}", fmt::join(seen, "\n  ")),
       .help = help_for_no_torch(programs)},
      ExitCode::kMachineLacks);
}

}  // namespace sim
