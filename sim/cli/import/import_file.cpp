#include "sim/cli/import/import_file.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "sim/cli/import/deepspeed_config.h"
#include "sim/cli/import/megatron_arguments.h"
#include "sim/cli/import/model_config_file.h"
#include "sim/cli/import/torchtitan_config.h"
#include "sim/cli/import/tree_config.h"
#include "sim/cli/values/yaml_tree.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::Json;
using estimator::UserError;

constexpr std::size_t kLargestScriptBytes = std::size_t{1} << 20;

/// The script beside the file, by the path that is written or by its name alone.
std::optional<std::string> read_beside(const std::string& path, const std::string& written) {
  const fs::path folder = fs::path(path).parent_path();
  const fs::path relative = fs::path(written).relative_path();
  if (relative.empty()) return std::nullopt;
  for (const fs::path& near : {folder / relative, folder / relative.filename()}) {
    if (std::error_code ignored; !fs::is_regular_file(near, ignored)) continue;
    return estimator::read_file(near.string(), {.bytes = kLargestScriptBytes});
  }
  return std::nullopt;
}

/// The first line that is not empty and no comment, without blanks at its end.
std::string first_line(const std::string& text) {
  constexpr const char* kBlanks = " \t\r\n";
  std::size_t begin = 0;
  while ((begin = text.find_first_not_of(kBlanks, begin)) != text.npos && text[begin] == '#') {
    begin = text.find('\n', begin);
    if (begin == text.npos) return "";
  }
  if (begin == text.npos) return "";
  const std::string line = text.substr(begin, text.find('\n', begin) - begin);
  return line.substr(0, line.find_last_not_of(kBlanks) + 1);
}

bool is_script(const std::string& text, const std::string& path) {
  const std::string extension = fs::path(path).extension().string();
  return text.starts_with("#!") || extension == ".sh" || extension == ".sbatch" ||
         extension == ".slurm";
}

[[noreturn]] void refuse_no_training(const std::string& path) {
  throw UserError({.what = path + " starts no training that Onerank reads",
                   .where = "no command in it has arguments of Megatron-LM",
                   .help = "give the script that starts the training"});
}

/// "[training]"
bool is_toml_table(const std::string& line) {
  return line.size() > 2 && line.front() == '[' && line.back() == ']' &&
         std::all_of(line.begin() + 1, line.end() - 1, [](unsigned char letter) {
           return std::isalpha(letter) != 0 || letter == '_' || letter == '.';
         });
}

std::optional<ImportedPlan> import_json(const std::string& text,
                                        const std::string& path,
                                        const std::string& origin) {
  Json tree;
  try {
    tree = estimator::parse_json(text, path);
  } catch (const UserError&) {
    return std::nullopt;  // the reader of plans says what is wrong with it
  }
  if (is_hf_config(tree)) return import_hf_config(tree, text, origin);
  // A job of GPT-NeoX has DeepSpeed's keys beside its own.
  if (auto plan = import_tree_config(tree, text, origin)) return plan;
  if (is_deepspeed_config(tree)) return import_deepspeed_config(tree, text, origin);
  return std::nullopt;
}

std::optional<ImportedPlan> import_yaml(const std::string& text,
                                        const std::string& path,
                                        const std::string& origin) {
  const std::string extension = fs::path(path).extension().string();
  if (extension != ".yml" && extension != ".yaml") return std::nullopt;
  Json tree;
  try {
    tree = parse_yaml(text, path, DuplicateKeys::kLastCounts);
  } catch (const UserError&) {
    return std::nullopt;  // the reader of plans says what is wrong with it
  }
  return import_tree_config(tree, text, origin);
}

}  // namespace

std::optional<ImportedPlan> import_text(const std::string& text, const std::string& path) {
  const std::string origin = fs::path(path).filename().string();
  const std::string first = first_line(text);
  if (first.starts_with('{')) {
    auto plan = import_json(text, path, origin);
    return plan ? std::move(plan) : import_yaml(text, path, origin);
  }
  if (is_toml_table(first)) return import_torchtitan_config(text, origin);
  const bool is_test = text.find("MODEL_ARGS:") != text.npos && !is_script(text, path);
  if (is_test) {
    const Json tree = parse_yaml(text, path, DuplicateKeys::kLastCounts);
    if (is_megatron_test(tree)) return import_megatron_test(tree, text, origin);
    refuse_no_training(path);
  }
  if (auto plan = import_yaml(text, path, origin)) return plan;
  if (text.find("--") == text.npos && !is_script(text, path)) return std::nullopt;
  auto plan = import_megatron_script(
      text, origin, [&](const std::string& written) { return read_beside(path, written); });
  if (!plan && is_script(text, path)) refuse_no_training(path);
  return plan;
}

}  // namespace sim
