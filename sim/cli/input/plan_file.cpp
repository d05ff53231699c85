#include "sim/cli/input/plan_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/base/text.h"
#include "estimator/plan/model_config.h"
#include "estimator/plan/option_table.h"
#include "estimator/resolve/plan_tree.h"
#include "sim/cli/import/import_file.h"
#include "sim/cli/import/python_choice.h"
#include "sim/cli/input/example_plans.h"
#include "sim/cli/torch/installation.h"
#include "sim/cli/values/yaml_tree.h"

namespace sim {
namespace {

using estimator::Json;
using estimator::UserError;

constexpr std::size_t kLargestPlanBytes = std::size_t{1} << 20;
constexpr const char* kExamples = "see `onerank list plans` for complete examples";

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
  if (estimator::is_digits(path)) {
    return "if it was to be the value of a switch such as --fsdp: a switch has none, write it "
           "alone";
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
  return fmt::format(
      "check the path, or name a plan of `onerank list plans`; plans to start from are in {}",
      plans.string());
}

/// By its name; standard input has none, and is JSON where it begins with a bracket.
bool is_yaml(const std::string& text, const std::string& path) {
  if (path == kStandardInput) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    return first != text.npos && text[first] != '{' && text[first] != '[';
  }
  const std::string extension =
      estimator::lower_case(std::filesystem::path(path).extension().string());
  return extension == ".yaml" || extension == ".yml";
}

/// Without a byte order mark at its beginning.
std::string checked_text(std::string text, const std::string& path) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.erase(0, kMark.size());
  check_is_text(text, path);
  return text;
}

std::string read_plan_text(const std::string& path) {
  if (path == kStandardInput) {
    return checked_text(estimator::read_file("/dev/stdin", {.bytes = kLargestPlanBytes}), path);
  }
  if (std::error_code error; !std::filesystem::exists(path, error)) {
    throw UserError({.what = "cannot read " + path,
                     .where = error ? error.message() : std::strerror(ENOENT),
                     .help = help_for_missing(path)});
  }
  return checked_text(estimator::read_file(path, {.bytes = kLargestPlanBytes}), path);
}

[[noreturn]] void refuse_foreign(const std::string& path, std::string where) {
  throw UserError({.what = path + " is no plan, and of no program that Onerank reads",
                   .where = std::move(where),
                   .help = "`onerank import --help` names those that it reads; for a plan " +
                           std::string(kExamples)});
}

/// Most keys are not those of plans.
void check_is_plan(const Json& tree, const std::string& path) {
  constexpr std::size_t kFewestForeign = 3;
  if (!tree.is_object() || tree.contains("schema_version")) return;  // another document of ours
  std::vector<std::string> foreign;
  const auto& options = estimator::plan_options();
  for (const auto& item : tree.items()) {
    const bool is_section = std::any_of(options.begin(), options.end(), [&](const auto& option) {
      return option.section() == item.key();
    });
    if (!is_section) foreign.push_back(item.key());
  }
  if (foreign.size() < kFewestForeign || 2 * foreign.size() <= tree.size()) return;
  foreign.resize(kFewestForeign);
  refuse_foreign(path, fmt::format("its keys are {}, ...", fmt::join(foreign, ", ")));
}

/// Neither JSON nor YAML by its name and its beginning: a program, or TOML.
void check_may_be_plan(const std::string& text, const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  const char first = text[text.find_first_not_of(" \t\r\n")];
  const bool may_be = is_yaml(text, path) || extension == ".json" || first == '{' || first == '[';
  if (may_be || path == kStandardInput || extension.empty()) return;
  refuse_foreign(path, "its name ends in " + extension);
}

Json plan_tree(const std::string& text, const std::string& path) {
  check_may_be_plan(text, path);
  const Json tree =
      is_yaml(text, path) ? parse_yaml(text, path) : estimator::parse_json(text, path);
  check_is_plan(tree, path);
  return estimator::with_new_keys(tree);
}

}  // namespace

FileAndFunction file_and_function(const std::string& named) {
  const std::size_t mark = named.rfind(kFunctionMark);
  std::error_code ignored;
  if (mark == named.npos || std::filesystem::exists(named, ignored)) return {named, ""};
  const std::string path = named.substr(0, mark);
  const bool is_file = std::filesystem::is_regular_file(path, ignored);
  return is_file ? FileAndFunction{path, named.substr(mark + 1)} : FileAndFunction{named, ""};
}

std::string file_meant_by(const std::string& named) {
  if (named == "-") return kStandardInput;
  std::error_code ignored;
  const bool exists = std::filesystem::exists(named, ignored);
  if (std::string example = find_example_plan(named); !exists && !example.empty()) return example;
  const std::filesystem::path config = std::filesystem::path(named) / "config.json";
  return std::filesystem::is_regular_file(config, ignored) ? config.string() : named;
}

PlanFile read_plan_or_other_file(const std::string& named,
                                 const std::optional<std::string>& script_arguments) {
  const auto [meant, function] = file_and_function(named);
  const std::string path = file_meant_by(meant);
  const std::string text = read_plan_text(path);
  PlanFile file;
  file.imported = import_text(text, path, script_arguments, function);
  file.tree = file.imported ? file.imported->tree : estimator::JsonValue(plan_tree(text, path));
  return file;
}

}  // namespace sim
