#include "sim/cli/torch/program_torch.h"

#include <regex>

#include "estimator/base/files.h"
#include "sim/cli/process/subprocess.h"

namespace sim {
namespace {

namespace fs = std::filesystem;

/// The empty entry is the folder that it is started in, which a program in a file does not search.
constexpr const char* kQuestion =
    "import importlib.util, sys\n"
    "sys.path = [folder for folder in sys.path if folder]\n"
    "spec = importlib.util.find_spec('torch')\n"
    "print(spec.origin if spec and spec.origin else '')\n";

/// The text of `name = '...'` or `name: type = '...'` in torch's version.py.
std::string text_of(const std::string& source, const std::string& name) {
  const std::regex line("(?:^|\n)" + name + "(?:: [^=\n]*)? = '([^']*)'");
  std::smatch match;
  return std::regex_search(source, match, line) ? match[1].str() : "";
}

}  // namespace

std::string kind_of(const std::string& version) {
  static const std::regex kWheel(R"((\d+\.\d+\.\d+\+cu\d+)\d)");
  std::smatch match;
  return std::regex_match(version, match, kWheel) ? match[1].str() : version;
}

std::string release_of(const std::string& version) {
  static const std::regex kRelease(R"((\d+\.\d+)\..*)");
  std::smatch match;
  return std::regex_match(version, match, kRelease) ? match[1].str() : "";
}

bool is_built_for(const std::string& version) {
  return kind_of(version) == kind_of(ONERANK_TORCH_VERSION);
}

std::optional<ProgramTorch> torch_in(const fs::path& folder) {
  const fs::path versions = folder / "version.py";
  if (folder.empty() || !fs::exists(versions)) return std::nullopt;
  const std::string source = estimator::read_file(versions);
  return ProgramTorch{.folder = folder,
                      .version = text_of(source, "__version__"),
                      .cuda = text_of(source, "cuda"),
                      .build = text_of(source, "git_version")};
}

bool is_python(const std::vector<std::string>& command) {
  static const std::regex kPython("python[0-9.]*");
  return std::regex_match(fs::path(command.front()).filename().string(), kPython);
}

std::optional<ProgramTorch> find_program_torch(const std::vector<std::string>& command,
                                               const Environment& environment,
                                               const Interrupts& interrupts) {
  if (!is_python(command)) return std::nullopt;
  fs::path origin;
  const SubprocessHooks hooks = {.on_output_line = [&](std::string_view line) { origin = line; },
                                 .on_tick = [] {}};
  const SubprocessEnd end = run_subprocess(
      {.program = command.front(), .arguments = {"-c", kQuestion}, .environment = environment},
      hooks,
      interrupts);
  if (end.exit_code != 0 || origin.empty()) return std::nullopt;
  return torch_in(origin.parent_path());
}

}  // namespace sim
