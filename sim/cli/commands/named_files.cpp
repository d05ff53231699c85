#include "sim/cli/commands/named_files.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/errors.h"
#include "sim/cli/input/plan_file.h"
#include "sim/cli/jobs/typed_arguments.h"
#include "sim/tracking/memory_file_kinds.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::UserError;

constexpr const char* kFile = "FILE";
constexpr const char* kFolder = "DIR";

struct FileOfCommand {
  std::string label;  ///< "--output p1.json"
  fs::path path;      ///< without links and dots
  bool is_written = false;
  bool is_folder = false;
};

bool writes_a_file(const CLI::Option& option) {
  static const std::set<std::string> kFlags = [] {
    std::set<std::string> flags = {"--output", "--html", "--trace", "--estimate", "--write-plan"};
    for (const MemoryFileKind& kind : kMemoryFiles) flags.insert(kind.flag);
    return flags;
  }();
  return option.get_type_name() == kFile && kFlags.contains(long_name(option));
}

/// An argument may be a file of any kind; a model may be told by a config.json.
bool may_name_a_file(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type == kFile || type == kFolder || option.get_positional() ||
         long_name(option) == "--model";
}

fs::path resolved(const std::string& name) {
  std::error_code ignored;
  return fs::weakly_canonical(fs::absolute(name, ignored), ignored);
}

std::vector<FileOfCommand> named_files(const CLI::App& app) {
  std::vector<FileOfCommand> files;
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || !may_name_a_file(*option)) continue;
    const bool is_written = writes_a_file(*option);
    const bool is_folder = option->get_type_name() == kFolder;
    const std::string name = option->get_name(/*positional=*/option->get_positional());
    for (const std::string& value : option->results()) {
      files.push_back({.label = fmt::format("{} {}", name, value),
                       .path = resolved(is_written || is_folder ? value : file_meant_by(value)),
                       .is_written = is_written,
                       .is_folder = is_folder});
    }
  }
  return files;
}

/// Folders of a command hold the profiles of its ranks.
bool is_lost(const FileOfCommand& written, const FileOfCommand& other) {
  if (written.path.empty() || &written == &other) return false;
  if (!other.is_folder) return written.path == other.path;
  return written.path.parent_path() == other.path &&
         written.path.filename().string().starts_with("rank-");
}

}  // namespace

void refuse_files_named_twice(const CLI::App& app) {
  const std::vector<FileOfCommand> files = named_files(app);
  for (const FileOfCommand& written : files) {
    if (!written.is_written) continue;
    const auto other = std::find_if(files.begin(), files.end(), [&](const FileOfCommand& file) {
      return is_lost(written, file);
    });
    if (other == files.end()) continue;
    throw UserError({.what = "one file would be written over another of the same command",
                     .where = fmt::format("{} and {}", written.label, other->label),
                     .help = "give the file that is written a name of its own"});
  }
}

}  // namespace sim
