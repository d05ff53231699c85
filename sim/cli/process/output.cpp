#include "sim/cli/process/output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "estimator/base/errors.h"
#include "estimator/base/files.h"
#include "estimator/base/text.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::UserError;

UserError cannot_write(const std::string& path, const std::string& flag, const std::string& why) {
  return UserError({.what = fmt::format("cannot write {}", path),
                    .where = fmt::format("{} {}: {}", flag, path, why),
                    .help = "give a path in a folder that you may write to"});
}

/// Throws unless files can be made in `folder`, for the sake of `path`.
void require_folder(const fs::path& folder, const std::string& path, const std::string& flag) {
  std::error_code error;
  const bool is_folder = fs::is_directory(folder, error);
  if (error) throw cannot_write(path, flag, error.message());
  if (!is_folder) throw cannot_write(path, flag, folder.string() + " is not a folder");
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw cannot_write(path, flag, std::strerror(errno));
  }
}

/// Throws when a name on the way to `status` can never be one.
void require_possible(const std::error_code& error,
                      const std::string& path,
                      const std::string& flag) {
  if (estimator::is_impossible_path(error)) throw cannot_write(path, flag, error.message());
}

/// False, with errno, when it could not be written to its end.
bool write_whole(int descriptor, std::string_view text) {
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t written = write(descriptor, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void write_output(std::string_view printable) {
  if (write_whole(STDOUT_FILENO, printable)) return;
  throw UserError(
      {.what = "cannot write to standard output",
       .where = std::strerror(errno),
       .help = "connect standard output to a reader, or to a file on a disk with free space"},
      estimator::ExitCode::kMachineLacks);
}

std::string painted(const std::string& line, std::span<const Paint> paints) {
  const std::size_t begin = std::min(line.find_first_not_of(" 0123456789."), line.size());
  const std::string_view rest = std::string_view(line).substr(begin);
  for (const Paint& paint : paints) {
    if (!rest.starts_with(paint.words)) continue;
    return fmt::format("{}\x1b[{}m{}\x1b[0m{}",
                       line.substr(0, begin),
                       paint.code,
                       paint.words,
                       rest.substr(paint.words.size()));
  }
  return line;
}

}  // namespace

void write_to_standard_output(std::string_view text) { write_output(estimator::printable(text)); }

void write_to_standard_output(std::string_view text, std::span<const Paint> paints) {
  std::vector<std::string> lines = estimator::split(estimator::printable(text), '\n');
  for (std::string& line : lines) line = painted(line, paints);
  write_output(fmt::format("{}", fmt::join(lines, "\n")));
}

void write_to_standard_error(std::string_view text) {
  write_whole(STDERR_FILENO, estimator::printable(text));
}

void check_writable(const std::string& path, const std::string& flag) {
  if (path.empty()) return;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  require_possible(error, path, flag);
  if (fs::is_directory(status)) throw cannot_write(path, flag, "it is a folder");
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw cannot_write(path, flag, "it is not a regular file");
  }
  const fs::path parent = fs::path(path).parent_path();
  require_folder(parent.empty() ? "." : parent, path, flag);
}

void check_writable_document(const std::string& path, const std::string& flag) {
  static constexpr std::string_view kOthers[] = {
      ".csv", ".tsv", ".xlsx", ".md", ".txt", ".html", ".yaml", ".yml", ".toml", ".pickle"};
  const std::string extension = fs::path(path).extension().string();
  if (std::find(std::begin(kOthers), std::end(kOthers), extension) != std::end(kOthers)) {
    throw UserError({.what = "the file is JSON, whatever its name says",
                     .where = fmt::format("{} {}", flag, path),
                     .help = "give it a name that ends in .json"});
  }
  check_writable(path, flag);
}

void check_writable_folder(const std::string& path, const std::string& flag) {
  if (path.empty()) return;
  std::error_code error;
  fs::path existing = fs::absolute(path, error);
  while (existing.has_relative_path() && !fs::exists(existing, error)) {
    require_possible(error, path, flag);
    existing = existing.parent_path();
  }
  require_folder(existing, path, flag);
}

}  // namespace sim
