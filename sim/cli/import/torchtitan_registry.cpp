#include "sim/cli/import/torchtitan_registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <vector>

#include "estimator/base/contains.h"
#include "estimator/base/errors.h"
#include "sim/cli/import/launcher_words.h"
#include "sim/cli/import/python/python_files.h"
#include "sim/cli/import/python_choice.h"
#include "sim/cli/import/python_entries.h"
#include "sim/cli/import/torchtitan_config.h"
#include "sim/cli/import/training_command.h"
#include "sim/cli/import/tree_entries.h"

namespace sim {
namespace {

using ValueKind = PythonValue::Kind;

constexpr const char* kModelFunction = "model_registry";
constexpr const char* kAdamWFunction = "default_adamw";

/// A job's keys, and where its registry lies.
struct RegistryJob {
  std::vector<SourceEntry> entries;
  std::vector<std::string> undecided;
};

/// The class of a field's object: "FullAC" of FullAC.Config(); "" without an object.
std::string class_of(const PythonValue& value) {
  if (!value.is(ValueKind::kObject)) return "";
  std::string name = value.text;
  constexpr std::string_view kConfig = ".Config";
  if (name.ends_with(kConfig)) name.erase(name.size() - kConfig.size());
  return name.substr(name.rfind('.') + 1);
}

std::string classes_of(const PythonValue& list) {
  std::vector<std::string> names;
  if (!list.is(ValueKind::kList)) return list.is_none() ? "" : "unknown";
  for (const PythonItem& item : *list.items) names.push_back(class_of(item.value));
  return fmt::format("{}", fmt::join(names, ","));
}

class KeysOfConfig {
 public:
  KeysOfConfig(const PythonValue& config, std::string family, const std::string& origin)
      : config_(config), family_(std::move(family)), origin_(origin) {}

  std::vector<SourceEntry> entries() && {
    entries_ = entries_of_python(config_, origin_);
    add_model();
    add_recomputation();
    if (const PythonItem* loss = find_python_item(config_, "loss"))
      add("loss.kind", class_of(loss->value), *loss);
    const PythonItem* optimizer = find_python_item(config_, "optimizer");
    if (optimizer != nullptr) {
      const std::string name = class_of(optimizer->value);
      add("optimizer.name", name == kAdamWFunction ? "AdamW" : name, *optimizer);
    }
    return std::move(entries_);
  }

 private:
  void add(const char* key, std::string value, const PythonItem& item) {
    entries_.push_back({.key = normal_key(key),
                        .values = {std::move(value)},
                        .place = item.place.empty() ? origin_ : item.place});
  }

  void add_model() {
    const PythonItem* model = find_python_item(config_, "model_spec");
    if (model == nullptr) return;
    add("model.name", family_, *model);
    const PythonValue* flavor = python_argument(model->value, 0);
    if (flavor != nullptr) add("model.flavor", flavor->as_text(), *model);
    const PythonItem* attention = find_python_item(model->value, "attn_backend");
    if (attention != nullptr) add("model.attn_backend", attention->value.as_text(), *model);
    const PythonItem* converters = find_python_item(model->value, "converters");
    if (converters != nullptr) add("model.converters", classes_of(converters->value), *model);
  }

  void add_recomputation() {
    const PythonItem* checkpoints = find_python_item(config_, "activation_checkpoint");
    if (checkpoints == nullptr) return;
    constexpr std::pair<std::string_view, const char*> kModes[] = {
        {"FullAC", "full"},
        {"SelectiveAC", "selective"},
        {"MemoryBudgetAC", "memory_budget"},
        {"", "none"}};
    const std::string name = class_of(checkpoints->value);
    const auto* mode = std::find_if(std::begin(kModes), std::end(kModes), [&](const auto& known) {
      return known.first == name;
    });
    add("activation_checkpoint.mode", mode == std::end(kModes) ? name : mode->second, *checkpoints);
  }

  const PythonValue& config_;
  std::string family_;
  const std::string& origin_;
  std::vector<SourceEntry> entries_;
};

RegistryJob job_of(PythonFile file, const std::string& function, const std::string& origin) {
  const std::string family = std::filesystem::path(file.path).parent_path().filename().string();
  PythonProgram program(
      std::move(file),
      {.find = python_files_around(), .not_followed = {kModelFunction, kAdamWFunction}});
  const std::string chosen = chosen_function(program.functions(), "*", function, origin);
  const PythonValue config = program.call(chosen);
  refuse_no_object(config, chosen, origin);
  return {KeysOfConfig(config, family, origin).entries(), program.undecided()};
}

/// Sequences of so many tokens; the job counts tokens (TrainingConfig in config/configs.py).
int64_t sequences_of(int64_t tokens,
                     int64_t length,
                     const std::string& key,
                     const std::string& origin) {
  if (length > 0 && tokens > 0 && tokens % length == 0) return tokens / length;
  throw estimator::UserError(
      {.what = "tokens are no whole sequences of the longest context",
       .where = fmt::format(
           "{}: {} = {}, training.max_context_length = {}", origin, key, tokens, length),
       .help = "use a multiple: sequences are taken to be that long"});
}

/// The batch as version 0.2 says it: in sequences, and before it is cut for the pipeline.
void count_sequences(std::vector<SourceEntry>& entries, const std::string& origin) {
  constexpr const char* kTokens = "training.num_tokens_per_microbatch_per_dp_rank";
  constexpr const char* kStep = "training.num_tokens_per_train_step";
  constexpr int64_t kDefaultTokens = 16384, kDefaultLength = 2048;
  const int64_t length = number_of_entry(entries, "training.max_context_length", kDefaultLength);
  const int64_t size =
      sequences_of(number_of_entry(entries, kTokens, kDefaultTokens), length, kTokens, origin);
  const auto add = [&](const char* key, int64_t value) {
    entries.push_back({.key = normal_key(key), .values = {std::to_string(value)}, .place = origin});
  };
  const bool has_stages = number_of_entry(entries, "parallelism.pipeline_parallel_degree", 1) > 1;
  const int64_t pieces =
      has_stages ? number_of_entry(entries, "parallelism.num_pp_microbatches", 1) : 1;
  add("training.seq_len", length);
  add("training.local_batch_size", size * pieces);
  if (has_stages) add("parallelism.pipeline_parallel_microbatch_size", size);
  const int64_t step = number_of_entry(entries, kStep, -1);
  if (step > 0) add("training.global_batch_size", sequences_of(step, length, kStep, origin));
}

/// What holds in these versions where a job does not say it, and is otherwise in version 0.2.
void add_new_defaults(std::vector<SourceEntry>& entries, const std::string& origin) {
  const auto add = [&](const char* key, const char* value) {
    if (find_entry(entries, key) == nullptr)
      entries.push_back(
          {.key = normal_key(key), .values = {value}, .place = "default of TorchTitan"});
  };
  add("model.attn_backend", "flex");
  add("activation_checkpoint.selective_ac_option", "op");
  const bool has_stages = number_of_entry(entries, "parallelism.pipeline_parallel_degree", 1) > 1;
  add("training.disable_cuda_graphs", has_stages ? "true" : "false");
  count_sequences(entries, origin);
}

ImportedPlan plan_of_job(RegistryJob job, const std::string& origin) {
  add_new_defaults(job.entries, origin);
  ImportedPlan plan = import_torchtitan_entries(job.entries, origin);
  note_undecided(job.undecided, plan);
  return plan;
}

/// `python -m torchtitan.train`, `torchtitan_train`, `torchtitan/train.py`.
ProgramWords torchtitan_program(const ShellCommand& command) {
  constexpr std::string_view kPrograms[] = {
      "torchtitan.train", "torchtitan_train", "torchtitan/train.py"};
  const auto found =
      std::find_if(command.words.begin(), command.words.end(), [&](const ShellWord& word) {
        return estimator::contains(kPrograms, std::string_view(word.text)) ||
               word.text.ends_with("/torchtitan/train.py");
      });
  if (found == command.words.end()) return {};
  return {static_cast<std::size_t>(found - command.words.begin()), 1};
}

std::optional<TrainingCommand> find_torchtitan_command(const Job& job, const ArgumentLines& lines) {
  for (TrainingCommand& command : training_commands(job.script, lines, torchtitan_program)) {
    const bool names_job = find_entry(command.entries, "module") != nullptr &&
                           find_entry(command.entries, "config") != nullptr;
    if (!command.program.empty() && names_job) return std::move(command);
  }
  return std::nullopt;
}

/// Arguments win over the registry's keys.
void override_with(std::vector<SourceEntry> arguments, std::vector<SourceEntry>& entries) {
  for (SourceEntry& argument : arguments) {
    std::erase_if(entries, [&](const SourceEntry& entry) { return entry.key == argument.key; });
    entries.push_back(std::move(argument));
  }
}

std::optional<PythonFile> registry_of(const std::string& module, const std::string& path) {
  for (const char* folder : {"torchtitan.models.", "torchtitan.experiments.", ""}) {
    if (auto file = python_files_around()(path, folder + module + ".config_registry")) return file;
  }
  return std::nullopt;
}

}  // namespace

bool is_torchtitan_registry(const std::string& text) {
  return text.find("torchtitan") != text.npos && text.find("Trainer.Config") != text.npos;
}

ImportedPlan import_torchtitan_registry(PythonFile file,
                                        const std::string& function,
                                        const std::string& origin) {
  return plan_of_job(job_of(std::move(file), function, origin), origin);
}

std::optional<ImportedPlan> import_torchtitan_script(const std::string& text,
                                                     const std::string& path,
                                                     const std::string& origin,
                                                     const ScriptInput& input) {
  if (text.find("torchtitan") == text.npos) return std::nullopt;
  const Job job = read_job(text, origin, input);
  auto command = find_torchtitan_command(job, ArgumentLines(text, origin));
  if (!command) return std::nullopt;
  const SourceEntry module = *find_entry(command->entries, "module");
  const SourceEntry config = *find_entry(command->entries, "config");
  std::erase_if(command->entries, [](const SourceEntry& entry) {
    return entry.key == "module" || entry.key == "config";
  });
  auto registry = registry_of(module.value(), path);
  RegistryJob read =
      registry ? job_of(std::move(*registry), config.value(), module.value()) : RegistryJob{};
  override_with(std::move(command->entries), read.entries);
  ImportedPlan plan = plan_of_job(std::move(read), origin);
  if (!registry) add_technique(plan, "another-file", module);
  set_cluster(launched_cluster(job, *command), plan);
  return plan;
}

}  // namespace sim
