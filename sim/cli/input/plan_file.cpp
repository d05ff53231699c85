#include "sim/cli/input/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "estimator/base/files.h"
#include "estimator/base/units.h"
#include "sim/cli/input/yaml_tree.h"

namespace sim {
namespace {

using estimator::Json;
using estimator::UserError;

constexpr std::size_t kLargestPlanBytes = std::size_t{1} << 20;
constexpr int kDeepestNesting = 64;
constexpr const char* kExamples = "see scripts/plans/ for complete examples";

/// Reads no more than a plan can hold: the path may be a device or a pipe that never ends.
std::string read_bounded(const std::string& path) {
  const auto unreadable = [&](std::string why) {
    return UserError({.what = fmt::format("cannot read {}", path),
                      .where = std::move(why),
                      .help = "check the path and its permissions"});
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw unreadable("it is a folder");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw unreadable(std::strerror(errno));
  std::string text(kLargestPlanBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) throw unreadable(std::strerror(errno));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

/// Brackets, not looking at strings: enough to keep a parser's stack safe.
int deepest_nesting(const std::string& text) {
  int depth = 0;
  int deepest = 0;
  for (const char letter : text) {
    if (letter == '[' || letter == '{') deepest = std::max(deepest, ++depth);
    if (letter == ']' || letter == '}') --depth;
  }
  return deepest;
}

void check_is_text(const std::string& text, const std::string& path) {
  const auto refuse = [&](std::string what, std::string where, std::string help) {
    throw UserError({fmt::format("{} {}", path, what), std::move(where), std::move(help)});
  };
  if (text.size() > kLargestPlanBytes) {
    refuse("is too large for a plan", "it has more than 1 MiB", kExamples);
  }
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {
    refuse("is not a text file", fmt::format("byte {} is zero", zero), "give a JSON or YAML file");
  }
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    refuse("is empty", fmt::format("{} bytes", text.size()), kExamples);
  }
  if (deepest_nesting(text) > kDeepestNesting) {
    refuse("is nested too deeply", fmt::format("more than {} levels", kDeepestNesting), kExamples);
  }
}

bool is_yaml(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return extension == ".yaml" || extension == ".yml";
}

}  // namespace

Json read_plan_file(const std::string& path) {
  const std::string text = read_bounded(path);
  check_is_text(text, path);
  return is_yaml(path) ? parse_yaml(text, path) : estimator::parse_json(text, path);
}

}  // namespace sim
