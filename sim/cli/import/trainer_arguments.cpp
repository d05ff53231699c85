#include "sim/cli/import/trainer_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/plan/model_config.h"
#include "estimator/resolve/sized_model.h"
#include "sim/cli/import/deepspeed_config.h"
#include "sim/cli/import/launcher_words.h"
#include "sim/cli/import/model_config_file.h"
#include "sim/cli/import/trainer_entries.h"
#include "sim/cli/import/trainer_programs.h"
#include "sim/cli/import/training_command.h"
#include "sim/cli/import/tree_config.h"
#include "sim/cli/import/tree_entries.h"
#include "sim/cli/values/yaml_tree.h"

namespace sim {
namespace {

using estimator::Json;

constexpr std::array<const char*, 3> kModelKeys = {
    "model-name-or-path", "base-model", "config-name"};

/// A file that a training names, with its text.
struct NamedFile {
  Json tree;
  std::string text;
  std::string origin;
};

bool is_config_name(const std::string& name) {
  return name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json");
}

/// By its path, or by its name alone beside the script. Nothing if it is not there or has no keys.
std::optional<NamedFile> read_named(const std::string& path, const ScriptFinder& find_file) {
  const std::string name = std::filesystem::path(path).filename().string();
  std::optional<std::string> text = find_file(path);
  if (!text) text = find_file(name);
  if (!text) return std::nullopt;
  NamedFile file{.tree = {}, .text = *text, .origin = name};
  try {
    file.tree = path.ends_with(".json") ? estimator::parse_json(*text, name)
                                        : parse_yaml(*text, name, YamlReading::kAsPython);
  } catch (const estimator::UserError&) {
    return std::nullopt;  // templates of other tools have such names
  }
  return file.tree.is_object() ? std::optional(std::move(file)) : std::nullopt;
}

/// Entries of a file; a key without a value says nothing.
std::vector<SourceEntry> said_entries(const NamedFile& file) {
  std::vector<SourceEntry> entries = entries_of_tree(file.tree, file.text, file.origin);
  std::erase_if(entries, [](const SourceEntry& entry) { return entry.values.empty(); });
  return entries;
}

/// What a training was given: its arguments, and those of its launcher.
struct TrainerCall {
  const TrainerProgram* program = nullptr;
  std::string words;  ///< that started it; empty in a file of arguments
  int line = 0;
  std::vector<SourceEntry> entries;
  std::vector<SourceEntry> launcher;      ///< of `accelerate launch`
  std::vector<SourceEntry> missing = {};  ///< files of arguments that are not there
};

class TrainerImport {
 public:
  /// `deepspeed`: DeepSpeed's configuration, if it is in the file of arguments itself.
  TrainerImport(const std::string& origin, const ScriptFinder& find_file, Json deepspeed = {})
      : origin_(origin), find_file_(find_file), deepspeed_(std::move(deepspeed)) {}

  ImportedPlan import(TrainerCall call) {
    const std::vector<SourceEntry> deepspeed = take_entries("deepspeed", call.entries);
    add_fsdp_file(call.entries);
    call.entries = trainer_entries(std::move(call.entries));
    const std::vector<SourceEntry> model = take_model(call.entries);
    add_facts(call);
    for (SourceEntry named : model) {
      named.as_written = named.shown();
      named.key = "named-model";
      call.entries.push_back(std::move(named));
    }
    plan_ = import_entries(call.entries, trainer_table(call.program->program), origin_);
    forget_facts();
    for (const SourceEntry& file : call.missing) use_other_file(file);
    add_deepspeed(deepspeed);
    add_accelerate(call.launcher);
    set_model(model);
    set_types();
    refuse_other_adapters();
    ask_for_length();
    name_program(call);
    return std::move(plan_);
  }

 private:
  void use_other_file(const SourceEntry& entry) { add_technique(plan_, "another-file", entry); }

  /// --fsdp_config FILE
  void add_fsdp_file(std::vector<SourceEntry>& entries) const {
    const SourceEntry* entry = find_entry(entries, "fsdp_config");
    if (entry == nullptr || !is_config_name(entry->value())) return;
    const auto file = read_named(entry->value(), find_file_);
    if (!file) return;
    std::vector<SourceEntry> inner = said_entries(*file);
    take_entries("fsdp-config", entries);
    for (SourceEntry& key : inner) {
      key.key.insert(0, "fsdp-config.");
      entries.push_back(std::move(key));
    }
  }

  static std::vector<SourceEntry> take_model(std::vector<SourceEntry>& entries) {
    for (const char* key : kModelKeys) {
      if (auto taken = take_entries(key, entries); !taken.empty()) return taken;
    }
    return {};
  }

  /// What rows and defaults depend on, beside the arguments.
  static void add_facts(TrainerCall& call) {
    call.entries.push_back({.key = "program", .values = {call.program->program}, .place = ""});
    call.entries.push_back({.key = "training-program", .values = {call.words}, .place = ""});
    if (!call.program->technique.empty()) {
      call.entries.push_back({.key = "other-training", .values = {"true"}, .place = ""});
    }
    const bool has_fsdp =
        std::any_of(call.entries.begin(), call.entries.end(), [](const SourceEntry& entry) {
          return entry.key.starts_with("fsdp");
        });
    if (!has_fsdp || call.program->program != "axolotl") return;
    call.entries.push_back({.key = "axolotl-fsdp", .values = {"true"}, .place = ""});
    call.entries.push_back({.key = "fsdp.true", .values = {"true"}, .place = ""});
  }

  void forget_facts() {
    for (auto* list : {&plan_.modelled, &plan_.without_effect}) {
      std::erase_if(*list, [](const SourceEntry& entry) {
        return entry.place.empty() || entry.key == "precision" || entry.key == "named-model";
      });
    }
  }

  void add_deepspeed(const std::vector<SourceEntry>& entries) {
    if (entries.empty()) return;
    const SourceEntry& entry = entries.front();
    if (entry.key != "deepspeed" || entry.value().starts_with('{')) {
      return add_inline_deepspeed(entries);
    }
    if (!is_config_name(entry.value()) && entry.value().find('$') == std::string::npos) return;
    add_deepspeed_file(entry);
  }

  void add_deepspeed_file(const SourceEntry& entry) {
    const auto file = read_named(entry.value(), find_file_);
    if (!file || !is_deepspeed_config(file->tree)) {
      set_key(plan_, "training.framework", "deepspeed");
      return use_other_file(entry);
    }
    plan_.modelled.push_back(entry);
    merge_under(plan_, import_deepspeed_config(file->tree, file->text, file->origin));
  }

  /// A configuration in the arguments themselves, as JSON text or as keys of the file.
  void add_inline_deepspeed(const std::vector<SourceEntry>& entries) {
    const SourceEntry& first = entries.front();
    const bool is_text = first.key == "deepspeed";
    const Json tree = is_text ? estimator::parse_json(first.value(), first.place) : deepspeed_;
    merge_under(plan_, import_deepspeed_config(tree, "", first.place));
  }

  void add_accelerate(std::vector<SourceEntry> entries) {
    if (entries.empty()) return;
    for (const SourceEntry& file : take_entries("config-file", entries)) {
      const auto named = read_named(file.value(), find_file_);
      if (!named) {
        use_other_file(file);
        continue;
      }
      std::vector<SourceEntry> all = said_entries(*named);
      plan_.modelled.push_back(file);
      for (SourceEntry& entry : accelerate_entries(entries)) all.push_back(std::move(entry));
      return merge_accelerate(std::move(all));
    }
    merge_accelerate(accelerate_entries(entries));
  }

  void merge_accelerate(std::vector<SourceEntry> entries) {
    const auto files = take_entries("deepspeed-config.deepspeed-config-file", entries);
    if (!files.empty()) {
      take_entries("distributed-type", entries);
      add_deepspeed_file(files.back());
    }
    ImportedPlan launched = import_accelerate_entries(entries, origin_);
    // The Trainer's own arguments say its precision where the launcher says none
    // (TrainingArguments).
    if (said_key(launched, "training.dtype") == "fp32") erase_key(launched, "training", "dtype");
    merge_under(plan_, std::move(launched));
  }

  void set_model(const std::vector<SourceEntry>& entries) {
    if (entries.empty()) return;
    const SourceEntry& entry = entries.back();
    const auto text = find_file_(entry.value() + "/config.json");
    const Json config = text ? estimator::parse_json(*text, entry.value()) : Json();
    const bool is_folder = is_hf_config(config);
    const auto* preset = is_folder ? nullptr : estimator::find_model_preset(entry.value());
    if (!is_folder && preset == nullptr) {
      plan_.model_name = entry.value();
      return;
    }
    plan_.modelled.push_back(entry);
    if (preset != nullptr) return set_key(plan_, "model", preset->name);
    merge_under(plan_, import_hf_config(config, *text, "config.json"));
  }

  /// The type of the model where no precision is said. FSDP2 and DeepSpeed make parameters of the
  /// type that they need of any that were loaded (fsdp2_prepare_model of accelerate,
  /// _configure_distributed_model of DeepSpeed's engine).
  void set_types() {
    if (said_key(plan_, "training.framework").is_null()) {
      set_key(plan_, "training.framework", "transformers");
    }
    const Json loaded = said_key(plan_, "training.mixed_precision");
    const Json stage = said_key(plan_, "parallelism.zero_stage");
    if (said_key(plan_, "training.dtype").is_null()) {
      set_key(plan_, "training.dtype", loaded == false ? "bf16" : "fp32");
    }
    const bool is_replicated =
        said_key(plan_, "training.framework") == "transformers" && (stage.is_null() || stage == 0);
    if (loaded == false && !is_replicated) erase_key(plan_, "training", "mixed_precision");
    if (!loaded.is_null() || !is_replicated || said_key(plan_, "training.dtype") == "fp32") return;
    if (!said_key(plan_, "training.lora_rank").is_null()) {
      return plan_.notes.push_back("the weights beside adapters are taken to be loaded in 16 bits");
    }
    plan_.notes.push_back(
        "the model is taken to be loaded in fp32, as transformers 4 does; version 5 loads it in "
        "the type of its checkpoint: --no-mixed-precision");
  }

  /// A plan has adapters under the Trainer itself, of dense models.
  void refuse_other_adapters() {
    if (said_key(plan_, "training.lora_rank").is_null()) return;
    const bool is_trainers = said_key(plan_, "training.framework") == "transformers";
    if (is_trainers && !estimator::names_experts(plan_.tree.json())) return;
    for (const char* key : {"lora_rank", "lora_dropout", "lora_target_modules"}) {
      erase_key(plan_, "training", key);
    }
    add_technique(plan_,
                  "adapters",
                  {.key = is_trainers ? "adapters of experts" : "adapters under DeepSpeed",
                   .values = {},
                   .place = origin_});
  }

  static void erase_key(ImportedPlan& plan, const char* part, const char* key) {
    Json tree = plan.tree.json();
    tree[part].erase(key);
    plan.tree = tree;
  }

  void ask_for_length() {
    constexpr const char* kPath = "training.sequence_length";
    if (!said_key(plan_, kPath).is_null()) return;
    plan_.unset.push_back(
        {{.key = "the length of a sample", .values = {}, .place = origin_}, kPath});
  }

  /// A program with arguments of its own.
  void name_program(const TrainerCall& call) {
    const std::string& technique = call.program->technique;
    if (technique.empty()) return;
    const bool is_file = call.words.empty();
    add_technique(plan_,
                  technique,
                  {.key = is_file ? call.program->program : call.words,
                   .values = {},
                   .place = is_file ? origin_ : fmt::format("{}:{}", origin_, call.line)});
    for (SourceEntry& entry : plan_.unknown) add_technique(plan_, technique, std::move(entry));
    plan_.unknown.clear();
  }

  const std::string& origin_;
  const ScriptFinder& find_file_;
  const Json deepspeed_;
  ImportedPlan plan_;
};

/// Arguments of a file that the command names, and then its own.
void add_file_of(const TrainingCommand& command,
                 const ArgumentLines& lines,
                 const ScriptFinder& find_file,
                 TrainerCall& call) {
  std::vector<SourceEntry> names = take_entries("config", call.entries);
  for (const ShellWord& word : command.bare) {
    names.push_back(
        {.key = "config", .values = {word.text}, .place = lines.place("config", word.line)});
  }
  for (const SourceEntry& name : names) {
    if (!is_config_name(name.value())) continue;
    const auto file = read_named(name.value(), find_file);
    if (!file) {
      call.missing.push_back(name);
      continue;
    }
    std::vector<SourceEntry> entries = said_entries(*file);
    if (const TrainerProgram* program = trainer_program_of(entries)) {
      const bool is_known = call.program != nullptr && call.program->program != "transformers";
      if (!is_known) call.program = program;
    }
    entries.insert(entries.end(), call.entries.begin(), call.entries.end());
    call.entries = std::move(entries);
  }
}

/// A call of a program of the Trainer, with its arguments; nothing for other commands.
std::optional<TrainerCall> call_of(const TrainingCommand& command,
                                   const ArgumentLines& lines,
                                   const ScriptFinder& find_file) {
  TrainerCall call{.program = trainer_program_of(command),
                   .words = command.program,
                   .line = command.line,
                   .entries = command.entries,
                   .launcher = {}};
  add_file_of(command, lines, find_file, call);
  const TrainerProgram* by_keys = trainer_program_of(call.entries);
  if (call.program == nullptr) call.program = by_keys;  // arguments without a program
  if (call.program == nullptr || (!call.program->alone && by_keys == nullptr)) return std::nullopt;
  if (starts_with_accelerate(command.launcher)) {
    call.launcher = entries_of_words(command.launcher, 0, lines);
    for (const SourceEntry& entry : call.launcher) {
      if (entry.may_be_arguments) call.entries.push_back(entry);
    }
  }
  return call;
}

bool launches_ranks(const TrainingCommand& command, const TrainerProgram& program) {
  const auto is_launcher = [](const ShellWord& word) {
    return word.text.ends_with("torchrun") || word.text.starts_with("torch.distributed") ||
           word.text.ends_with("deepspeed");
  };
  return program.starts_ranks || starts_with_accelerate(command.launcher) ||
         std::any_of(command.launcher.begin(), command.launcher.end(), is_launcher);
}

std::optional<int64_t> gpus_in_variables(const ShellScript& script) {
  const auto found = script.variables.find("CUDA_VISIBLE_DEVICES");
  if (found == script.variables.end() || found->second.empty()) return std::nullopt;
  const ShellWord& devices = found->second.front();
  if (devices.is_unknown || devices.text.find_first_not_of("0123456789,") != std::string::npos ||
      devices.text.empty()) {
    return std::nullopt;
  }
  return 1 + std::count(devices.text.begin(), devices.text.end(), ',');
}

void set_machines(const Job& job,
                  const TrainingCommand& command,
                  const TrainerProgram& program,
                  ImportedPlan& plan) {
  if (!said_key(plan, "cluster.gpus_per_node").is_null()) return;  // accelerate's
  LaunchedCluster cluster = launched_cluster(job, command);
  if (launches_ranks(command, program)) {
    cluster.tasks_start_ranks = true;
    if (!cluster.gpus_per_node) cluster.gpus_per_node = gpus_in_variables(job.script);
    const bool has_hosts =
        std::any_of(command.launcher.begin(), command.launcher.end(), [](const ShellWord& word) {
          return word.text.starts_with("--hostfile");
        });
    const bool may_be_more = has_hosts || may_say_machines(command.launcher);
    if (!cluster.nodes && !may_be_more && job.script.directives.empty()) cluster.nodes = 1;
  } else if (job.script.directives.empty() && command.launcher.size() <= 1) {
    cluster.nodes = 1;  // one process, which transformers' Trainer gives one GPU
    cluster.gpus_per_node = 1;
  }
  set_cluster(cluster, plan);
}

}  // namespace

std::optional<ImportedPlan> import_trainer_script(const std::string& text,
                                                  const std::string& origin,
                                                  const ScriptInput& input,
                                                  const ScriptFinder& find_file) {
  const Job job = read_job(text, origin, input);
  const ArgumentLines lines(text, origin);
  std::optional<TrainerCall> best;
  TrainingCommand best_command;
  std::vector<int> others;
  for (TrainingCommand& command : training_commands(job.script, lines, trainer_program_words)) {
    std::optional<TrainerCall> call = call_of(command, lines, find_file);
    if (!call) continue;
    if (call->program->technique.empty()) others.push_back(command.line);
    const bool is_better =
        !best || (!best->program->technique.empty() && call->program->technique.empty());
    if (!is_better) continue;
    best = std::move(call);
    best_command = std::move(command);
  }
  if (!best) return std::nullopt;
  add_job_variables(job.script, origin, best->entries);
  const TrainerProgram& program = *best->program;
  ImportedPlan plan = TrainerImport(origin, find_file).import(std::move(*best));
  std::erase(others, best_command.line);
  for (std::string& note : notes_on_others(origin, best_command, others, job.script)) {
    plan.notes.push_back(std::move(note));
  }
  set_machines(job, best_command, program, plan);
  return plan;
}

std::optional<ImportedPlan> import_trainer_config(const Json& tree,
                                                  const std::string& text,
                                                  const std::string& origin,
                                                  const ScriptFinder& find_file) {
  if (!tree.is_object()) return std::nullopt;
  std::vector<SourceEntry> entries = said_entries({.tree = tree, .text = text, .origin = origin});
  const TrainerProgram* program = trainer_program_of(entries);
  if (program == nullptr) return std::nullopt;
  const Json deepspeed = tree.contains("deepspeed") ? tree["deepspeed"] : Json();
  return TrainerImport(origin, find_file, deepspeed)
      .import({.program = program,
               .words = "",
               .line = 0,
               .entries = std::move(entries),
               .launcher = {}});
}

}  // namespace sim
