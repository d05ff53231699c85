#include "sim/cli/input/plan_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/base/text.h"
#include "estimator/plan/model_config.h"
#include "estimator/plan/option_table.h"
#include "estimator/plan/plan_tree.h"
#include "sim/cli/import/import_file.h"
#include "sim/cli/process/installation.h"
#include "sim/cli/values/yaml_tree.h"

namespace sim {
namespace {

using estimator::Json;
using estimator::UserError;

constexpr std::size_t kLargestPlanBytes = std::size_t{1} << 20;
constexpr const char* kExamples = "see scripts/plans/ for complete examples";

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
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {
    refuse("is not a text file", fmt::format("byte {} is zero", zero), "give a JSON or YAML file");
  }
  if (const std::size_t at = estimator::find_non_utf8(text); at != std::string::npos) {
    refuse("is not UTF-8 text", fmt::format("byte {} is none of it", at), "write it in UTF-8");
  }
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    refuse("is empty", fmt::format("{} bytes", text.size()), kExamples);
  }
  if (deepest_nesting(text) > estimator::kDeepestPlan) {
    refuse("is nested too deeply",
           fmt::format("more than {} levels", estimator::kDeepestPlan),
           kExamples);
  }
}

/// What somebody most likely meant who gave the path of a plan that is not there.
std::string help_for_missing(const std::string& path) {
  if (path == "true" || path == "false") {
    return fmt::format(
        "a switch does not take a value after a space: write it alone, or --switch={}", path);
  }
  if (const estimator::ModelPreset* model = estimator::find_model_preset(path)) {
    return fmt::format("to name a model, write --model {}", model->name);
  }
  const std::filesystem::path plans = built_with().plans;
  const std::filesystem::path name = std::filesystem::path(path).filename();
  for (const std::filesystem::path& near : {std::filesystem::path(path + ".json"),
                                            std::filesystem::path(path + ".yaml"),
                                            plans / name,
                                            plans / (name.string() + ".json")}) {
    if (std::error_code ignored; std::filesystem::is_regular_file(near, ignored)) {
      return fmt::format("did you mean {}?", near.string());
    }
  }
  return fmt::format("check the path; plans to start from are in {}", plans.string());
}

bool is_yaml(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return extension == ".yaml" || extension == ".yml";
}

}  // namespace

namespace {

/// Standard input is "-"; a model's folder has its shape in config.json; a name alone may be that
/// of an example.
std::string file_meant_by(const std::string& path) {
  if (path == "-") return "/dev/stdin";
  const std::filesystem::path example =
      std::filesystem::path(built_with().plans) / (path + ".json");
  const bool is_name = path.find('/') == path.npos;
  if (std::error_code none; is_name && !std::filesystem::exists(path, none) &&
                            std::filesystem::is_regular_file(example, none)) {
    return example.string();
  }
  const std::filesystem::path config = std::filesystem::path(path) / "config.json";
  std::error_code ignored;
  return std::filesystem::is_regular_file(config, ignored) ? config.string() : path;
}

std::string read_plan_text(const std::string& path) {
  if (std::error_code error; !std::filesystem::exists(path, error)) {
    throw UserError({.what = "cannot read " + path,
                     .where = error ? error.message() : std::strerror(ENOENT),
                     .help = help_for_missing(path)});
  }
  std::string text = estimator::read_file(path, {.bytes = kLargestPlanBytes});
  check_is_text(text, path);
  return text;
}

Json plan_tree(const std::string& text, const std::string& path) {
  return estimator::with_new_keys(is_yaml(path) ? parse_yaml(text, path)
                                                : estimator::parse_json(text, path));
}

}  // namespace

PlanFile read_plan_or_other_file(const std::string& named) {
  const std::string path = file_meant_by(named);
  const std::string text = read_plan_text(path);
  PlanFile file;
  file.imported = import_text(text, path);
  file.tree = file.imported ? file.imported->tree : estimator::JsonValue(plan_tree(text, path));
  return file;
}

Json read_plan_file(const std::string& path) { return plan_tree(read_plan_text(path), path); }

}  // namespace sim
