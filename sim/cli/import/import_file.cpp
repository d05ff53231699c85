#include "sim/cli/import/import_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "sim/cli/import/deepspeed_config.h"
#include "sim/cli/import/megatron_arguments.h"
#include "sim/cli/import/megatron_config.h"
#include "sim/cli/import/megatron_recipe.h"
#include "sim/cli/import/model_config_file.h"
#include "sim/cli/import/shell/shell_expansion.h"
#include "sim/cli/import/shell/shell_script.h"
#include "sim/cli/import/shell/shell_tokens.h"
#include "sim/cli/import/torchtitan_config.h"
#include "sim/cli/import/torchtitan_registry.h"
#include "sim/cli/import/trainer_arguments.h"
#include "sim/cli/import/tree_config.h"
#include "sim/cli/values/yaml_tree.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::Json;
using estimator::UserError;

constexpr const char* kPythonExtension = ".py";
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

/// The text of a file by its path from the folder of `path`, or from one that this folder is in.
std::optional<std::string> read_from_folders(const std::string& path, const std::string& written) {
  constexpr int kMostFolders = 8;
  const fs::path relative = fs::path(written).lexically_normal().relative_path();
  std::error_code ignored;
  fs::path folder = fs::absolute(path, ignored).lexically_normal().parent_path();
  for (int i = 0; i < kMostFolders && !relative.empty(); ++i) {
    if (fs::is_regular_file(folder / relative, ignored)) {
      return estimator::read_file((folder / relative).string(), {.bytes = kLargestScriptBytes});
    }
    if (folder == folder.parent_path()) break;
    folder = folder.parent_path();
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

/// Whether such a flag names the configuration of a training: --job.config_file, --deepspeed.
bool names_configuration(const std::string& flag) {
  return flag.starts_with("-") && (flag.find("config") != flag.npos || flag == "--deepspeed");
}

bool is_configuration(const std::string& file) {
  constexpr std::array<const char*, 4> kExtensions = {".toml", ".yaml", ".yml", ".json"};
  return std::any_of(kExtensions.begin(), kExtensions.end(), [&](const char* extension) {
    return file.ends_with(extension);
  });
}

/// The configuration that a command names, "x.toml" of "--job.config_file x.toml"; "" if none does.
std::string configuration_of(const ShellScript& script) {
  for (const ShellCommand& command : script.commands) {
    std::string flag;
    for (const ShellWord& word : command.words) {
      const std::size_t equals = word.text.find('=');
      const bool has_value = word.text.starts_with("-") && equals != word.text.npos;
      std::string value = has_value ? word.text.substr(equals + 1) : word.text;
      if (has_value) flag = word.text.substr(0, equals);
      if (names_configuration(flag) && is_configuration(value)) return value;
      flag = word.text;
    }
  }
  return "";
}

ScriptFinder scripts_beside(const std::string& path) {
  return [path](const std::string& written) { return read_beside(path, written); };
}

ScriptFinder files_near(const std::string& path) {
  return [path](const std::string& written) { return read_from_folders(path, written); };
}

[[noreturn]] void refuse_no_training(const std::string& path, const std::string& configuration) {
  const std::string help =
      configuration.empty()
          ? "give the script that starts the training"
          : fmt::format("give the configuration that it names: {}", configuration);
  throw UserError(
      {.what = path + " starts no training that Onerank reads",
       .where = "no command in it has arguments of Megatron-LM or of transformers' Trainer",
       .help = help});
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
  if (auto plan = import_trainer_config(tree, text, origin, files_near(path))) return plan;
  // A job of GPT-NeoX has DeepSpeed's keys beside its own.
  if (auto plan = import_tree_config(tree, text, origin)) return plan;
  if (is_deepspeed_config(tree)) return import_deepspeed_config(tree, text, origin);
  return std::nullopt;
}

std::optional<ImportedPlan> import_yaml(const std::string& text,
                                        const std::string& path,
                                        const std::string& origin) {
  const std::string extension = fs::path(path).extension().string();
  const bool may_be_yaml = extension == ".yml" || extension == ".yaml" || path == kStandardInput;
  if (!may_be_yaml) return std::nullopt;
  Json tree;
  try {
    tree = parse_yaml(text, path, YamlReading::kAsPython);
  } catch (const UserError&) {
    return std::nullopt;  // the reader of plans says what is wrong with it
  }
  if (is_megatron_config(tree)) return import_megatron_config(tree, text, origin);
  if (auto plan = import_trainer_config(tree, text, origin, files_near(path))) return plan;
  return import_tree_config(tree, text, origin);
}

/// The words of "7B 'a b' 1", as a shell divides them.
std::vector<std::string> script_arguments(const std::string& text) {
  ShellVariables none;
  const std::string origin = "--script-arguments";
  ShellExpansion expansion(none, origin);
  std::vector<std::string> arguments;
  for (const ShellToken& token : shell_tokens(text, 1, origin)) {
    if (token.kind != ShellToken::Kind::kWord) continue;
    for (const std::string& word : expansion.words(token.text)) {
      arguments.push_back(without_marks(word));
    }
  }
  return arguments;
}

/// A configuration of another program; nothing if it may be a plan or a script.
std::optional<ImportedPlan> import_configuration(const std::string& text,
                                                 const std::string& path,
                                                 const std::string& origin) {
  const std::string first = first_line(text);
  if (first.starts_with('{')) {
    auto plan = import_json(text, path, origin);
    return plan ? std::move(plan) : import_yaml(text, path, origin);
  }
  if (is_toml_table(first) || path.ends_with(".toml"))
    return import_torchtitan_config(text, origin);
  const bool is_test = text.find("MODEL_ARGS:") != text.npos && !is_script(text, path);
  if (is_test) {
    const Json tree = parse_yaml(text, path, YamlReading::kAsPython);
    if (is_megatron_test(tree)) return import_megatron_test(tree, text, origin);
    refuse_no_training(path, "");
  }
  return import_yaml(text, path, origin);
}

/// The training of a script, or of a list of arguments.
std::optional<ImportedPlan> import_script(const std::string& text,
                                          const std::string& path,
                                          const std::string& origin,
                                          const ScriptInput& input) {
  if (first_line(text).starts_with('{')) return std::nullopt;
  if (text.find("--") == text.npos && !is_script(text, path)) return std::nullopt;
  auto plan = import_torchtitan_script(text, path, origin, input);
  if (!plan) plan = import_trainer_script(text, origin, input, files_near(path));
  if (!plan) plan = import_megatron_script(text, origin, input);
  if (!plan && is_script(text, path)) {
    refuse_no_training(path, configuration_of(read_shell_script(text, origin, input.find_script)));
  }
  return plan;
}

/// The configuration that a function of a Python file makes; nothing for a program of no kind that
/// is read.
std::optional<ImportedPlan> import_python(const std::string& text,
                                          const std::string& path,
                                          const std::string& function,
                                          const std::string& origin) {
  if (is_megatron_recipe(text)) return import_megatron_recipe({path, text}, function, origin);
  if (is_torchtitan_registry(text))
    return import_torchtitan_registry({path, text}, function, origin);
  return std::nullopt;
}

}  // namespace

std::optional<ImportedPlan> import_text(const std::string& text,
                                        const std::string& path,
                                        const std::optional<std::string>& arguments,
                                        const std::string& function) {
  const std::string origin = fs::path(path).filename().string();
  if (path.ends_with(kPythonExtension)) return import_python(text, path, function, origin);
  auto plan = import_configuration(text, path, origin);
  if (!plan) {
    ScriptInput input{.find_script = scripts_beside(path)};
    if (arguments) input.arguments = script_arguments(*arguments);
    if ((plan = import_script(text, path, origin, input))) return plan;
  }
  if (!arguments) return plan;
  throw UserError({.what = path + " is no script, and takes no arguments",
                   .where = "--script-arguments",
                   .help = "leave it out"});
}

}  // namespace sim
