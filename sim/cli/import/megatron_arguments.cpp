#include "sim/cli/import/megatron_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "estimator/base/contains.h"
#include "estimator/base/database.h"
#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/glob.h"
#include "estimator/plan/model_config.h"
#include "estimator/plan/plan_tree.h"
#include "estimator/plan/sized_model.h"
#include "sim/cli/import/launcher_words.h"
#include "sim/cli/import/training_command.h"
#include "sim/cli/import/tree_entries.h"
#include "sim/cli/values/pipeline_layout.h"
#include "sim/cli/values/plan_flag_table.h"
#include "sim/cli/values/strict_number.h"

namespace onerank_data {
extern const std::string_view import_megatron_json;
extern const std::string_view import_megatron_defaults_json;
extern const std::string_view import_megatron_programs_json;
extern const std::string_view import_vocabularies_json;
}  // namespace onerank_data

namespace sim {

/// What a program trains, by its name.
struct ProgramRow {
  std::vector<std::string> names;
  std::vector<std::string> arguments;
  std::string technique;
};
template <class Visitor>
void visit_fields(Visitor& visit, ProgramRow& row) {
  visit("names", row.names, "patterns of the program's path");
  visit("arguments", row.arguments, "that Megatron-LM has not, and such a program has");
  visit("technique", row.technique, "what it does, if that is not modelled");
}

/// The size of a tokenizer's vocabulary.
struct VocabularyRow {
  std::string tokenizer;
  std::string model;
  int64_t vocab_size = 0;
  std::string source;
  bool assumed = false;
};
template <class Visitor>
void visit_fields(Visitor& visit, VocabularyRow& row) {
  visit("tokenizer", row.tokenizer, "--tokenizer-type");
  visit("model", row.model, "pattern of --tokenizer-model; empty: any");
  visit("vocab_size", row.vocab_size, "its tokens");
  visit("source", row.source, "where the number is from");
  visit("assumed", row.assumed, "the file that is named may have another size");
}

namespace {

using estimator::Json;
using estimator::UserError;

/// As many keys of Megatron-LM make a list of its arguments.
constexpr int kEnoughKeys = 3;

}  // namespace

const KeyTable& megatron_table() {
  static const KeyTable table = {
      .program = "Megatron-LM",
      .rows =
          [] {
            auto rows = read_key_rows(onerank_data::import_megatron_json, "megatron.json");
            const std::vector<KeyRow>& variables = environment_rows();
            rows.insert(rows.end(), variables.begin(), variables.end());
            return rows;
          }(),
      .defaults = estimator::read_database<DefaultRow>(onerank_data::import_megatron_defaults_json,
                                                       "megatron_defaults.json"),
      .flags = true};
  return table;
}

namespace {

const std::vector<ProgramRow>& program_rows() {
  static const auto rows = estimator::read_database<ProgramRow>(
      onerank_data::import_megatron_programs_json, "megatron_programs.json");
  return rows;
}

/// The keys by their own names, without those of patterns, and those that tell other programs.
const std::set<std::string>& known_keys() {
  static const auto known = [] {
    std::set<std::string> keys;
    for (const KeyRow& row : megatron_table().rows) {
      keys.insert(row.keys.begin(), row.keys.end());
    }
    for (const PlanFlagGroup& group : plan_flag_groups()) {
      for (const PlanFlag& flag : group.flags) {
        std::string key = normal_key(flag.said.names.front());
        if (flag.said.is_ours) {
          keys.erase(key);
        } else {
          keys.insert(std::move(key));
        }
      }
    }
    for (const ProgramRow& row : program_rows()) {
      keys.insert(row.arguments.begin(), row.arguments.end());
    }
    return keys;
  }();
  return known;
}

int count_known(const std::vector<SourceEntry>& entries) {
  return static_cast<int>(std::count_if(entries.begin(), entries.end(), [](const auto& entry) {
    return known_keys().contains(entry.key);
  }));
}

/// The arguments in variables, for a script whose commands have none.
TrainingCommand training_of_variables(const ShellScript& script, const ArgumentLines& lines) {
  TrainingCommand of_variables;
  std::vector<const std::vector<ShellWord>*> lists;
  for (const auto& [name, words] : script.variables) {
    if (!words.empty()) lists.push_back(&words);
  }
  std::stable_sort(lists.begin(), lists.end(), [](const auto* a, const auto* b) {
    return a->front().line < b->front().line;
  });
  for (const std::vector<ShellWord>* words : lists) {
    std::vector<SourceEntry> entries = entries_of_words(*words, 0, lines);
    if (count_known(entries) == 0) continue;
    std::vector<SourceEntry>& all = of_variables.entries;
    all.insert(all.end(), entries.begin(), entries.end());
  }
  return of_variables;
}

/// A log has the same words.
bool is_printed(const TrainingCommand& training) {
  constexpr std::string_view kPrinters[] = {"echo", "printf"};
  return !training.launcher.empty() &&
         estimator::contains(kPrinters, training.launcher.front().text);
}

/// The command with the most arguments of Megatron-LM, or the arguments in variables. `others` are
/// the lines of further commands.
std::optional<TrainingCommand> find_training(const ShellScript& script,
                                             const ArgumentLines& lines,
                                             std::vector<int>& others) {
  TrainingCommand best;
  int most = 0;
  for (TrainingCommand& training : training_commands(script, lines)) {
    const bool is_other = starts_with_accelerate(training.launcher) || is_printed(training);
    const int known = is_other ? 0 : count_known(training.entries);
    if (known >= kEnoughKeys) others.push_back(training.line);
    if (known <= most) continue;
    most = known;
    best = std::move(training);
  }
  if (most >= kEnoughKeys) {
    std::erase(others, best.line);
    return best;
  }
  TrainingCommand of_variables = training_of_variables(script, lines);
  if (count_known(of_variables.entries) < kEnoughKeys) return std::nullopt;
  return of_variables;
}

const SourceEntry* find_use(const ImportedPlan& plan, const std::string& key) {
  for (const auto* list : {&plan.modelled, &plan.without_effect}) {
    for (const SourceEntry& entry : *list) {
      if (entry.key == key) return &entry;
    }
  }
  return nullptr;
}

std::string said(const ImportedPlan& plan, const std::string& key) {
  const SourceEntry* entry = find_use(plan, key);
  return entry == nullptr ? "" : entry->value();
}

/// "Qwen/Qwen3-8B" may be a model that is known.
std::optional<int64_t> vocabulary_of_model(const std::string& name) {
  const auto* preset = estimator::find_model_preset(name);
  return preset == nullptr ? std::nullopt : std::optional(preset->config.vocab_size);
}

/// The null tokenizer has as many tokens as --vocab-size says, since core 0.18
/// (megatron/core/tokenizers/text/libraries/null_tokenizer.py).
void tell_of_end_of_document(const Json& words, ImportedPlan& plan) {
  if (said(plan, "tokenizer-type") != "NullTokenizer" || !words.is_number_integer()) return;
  plan.notes.push_back(
      fmt::format("up to core 0.17 the null tokenizer has a token more than --vocab-size says; for "
                  "such a core add --vocab-size {}",
                  words.get<int64_t>() + 1));
}

void set_vocabulary(ImportedPlan& plan) {
  if (const SourceEntry* padded = find_use(plan, "padded-vocab-size")) {
    set_key(plan, "model.vocab_size", parse_whole_number(padded->value(), padded->place));
    set_key(plan, "training.make_vocab_size_divisible_by", 1);
    return;
  }
  if (const Json words = said_key(plan, "model.vocab_size"); !words.is_null()) {
    return tell_of_end_of_document(words, plan);
  }
  static const auto rows = estimator::read_database<VocabularyRow>(
      onerank_data::import_vocabularies_json, "vocabularies.json");
  std::string tokenizer = said(plan, "tokenizer-type");
  const std::string model = said(plan, "tokenizer-model");
  if (tokenizer.empty() && find_use(plan, "merge-file") != nullptr) tokenizer = "GPT2BPETokenizer";
  for (const VocabularyRow& row : rows) {
    if (row.tokenizer != tokenizer) continue;
    if (!row.model.empty() && !estimator::matches_glob(model, row.model)) continue;
    set_key(plan, "model.vocab_size", row.vocab_size);
    if (row.assumed) {
      plan.notes.push_back(
          fmt::format("the vocabulary of {} is taken to have {} tokens ({}); "
                      "--vocab-size says otherwise",
                      tokenizer,
                      row.vocab_size,
                      row.source));
    }
    return;
  }
  if (const auto size = vocabulary_of_model(model)) set_key(plan, "model.vocab_size", *size);
}

/// A dense model has no use for what is said of experts.
void drop_experts(Json& tree) {
  if (estimator::names_experts(tree)) return;
  for (const char* section : {"model", "training"}) {
    if (!tree.contains(section)) continue;
    std::vector<std::string> keys;
    for (const auto& [key, value] : tree[section].items()) {
      if (key.starts_with("moe_")) keys.push_back(key);
    }
    for (const std::string& key : keys) tree[section].erase(key);
  }
  if (tree.contains("parallelism")) tree["parallelism"].erase("expert_tensor");
}

/// Without products in 8 bits their recipe says nothing.
void drop_unused_recipe(Json& tree) {
  const bool has_format = !estimator::find_in_tree(tree, "training.fp8_format").is_null();
  if (!has_format && tree.contains("training")) tree["training"].erase("fp8_recipe");
}

/// The batch of a schedule's last step: "0:384 200B:768 400B:1152".
void set_scheduled_batch(ImportedPlan& plan) {
  const SourceEntry* schedule = find_use(plan, "step-batch-size-schedule");
  if (schedule == nullptr || schedule->is_unknown || schedule->values.empty()) return;
  const std::string& last = schedule->values.back();
  const std::string batch = last.substr(last.rfind(':') + 1);
  set_key(plan, "training.global_batch_size", parse_whole_number(batch, schedule->place));
}

/// What __post_init__ of TransformerConfig refuses beside an end that counts as a layer.
void refuse_other_division(const std::string& flag, const SourceEntry& end) {
  const bool is_layout = flag == kPipelineLayoutFlag;
  const bool is_stage =
      flag == "--decoder-first-pipeline-num-layers" || flag == "--decoder-last-pipeline-num-layers";
  if (!is_layout && !is_stage) return;
  throw UserError({.what = is_layout ? "a layout has the embedding and the loss in it"
                                     : "a stage has a number of layers of its own, and the "
                                       "embedding or the loss counts as a layer",
                   .where = end.place + ", " + flag,
                   .help = "keep one of the two"});
}

/// The embedding and the loss count as a layer each (get_num_layers_to_build in
/// megatron/core/transformer/transformer_block.py).
void divide_with_ends(ImportedPlan& plan) {
  const SourceEntry* embedding = find_use(plan, "account-for-embedding-in-pipeline-split");
  const SourceEntry* loss = find_use(plan, "account-for-loss-in-pipeline-split");
  const int64_t layers = estimator::number_of_model(
                             plan.tree.json(), "num_layers", &estimator::ModelConfig::num_layers)
                             .value_or(0);
  if ((embedding == nullptr && loss == nullptr) || layers == 0) return;
  const auto number_of = [&](const char* path) {
    const Json said = said_key(plan, path);
    return said.is_number_integer() ? std::max<int64_t>(1, said.get<int64_t>()) : 1;
  };
  const int64_t stages = number_of("parallelism.pipeline");
  int64_t chunks = number_of("parallelism.virtual_stages");
  const int64_t all = layers + (embedding != nullptr) + (loss != nullptr);
  for (const auto& [flag, value] : plan.stage_flags) {
    refuse_other_division(flag, embedding != nullptr ? *embedding : *loss);
    if (flag != "--num-layers-per-virtual-pipeline-stage") continue;
    const int64_t of_chunk = parse_whole_number(value, flag);
    if (of_chunk >= 1) chunks = std::max<int64_t>(1, all / stages / of_chunk);
  }
  const int64_t pieces = stages * chunks;
  if (all % pieces != 0) {
    const SourceEntry& use = embedding != nullptr ? *embedding : *loss;
    throw UserError(
        {.what = "the layers, with the embedding and the loss, do not divide among the stages",
         .where = fmt::format("{}: {} of {} stages x {} chunks", use.place, all, stages, chunks),
         .help = fmt::format("use a number of layers that makes it a multiple of {}", pieces)});
  }
  std::vector<int64_t> of_piece(static_cast<std::size_t>(pieces), all / pieces);
  if (embedding != nullptr) --of_piece.front();
  if (loss != nullptr) --of_piece.back();
  plan.stage_flags.clear();
  set_key(plan, "parallelism.layers_per_stage", of_piece);
  if (chunks > 1) set_key(plan, "parallelism.virtual_stages", chunks);
}

/// --recompute-activations wins over --recompute-granularity (validate_args() in
/// megatron/training/arguments.py).
void set_recompute(ImportedPlan& plan) {
  const SourceEntry* activations = find_use(plan, "recompute-activations");
  if (activations != nullptr) set_key(plan, "training.recompute", "selective");
}

}  // namespace

void finish_megatron_plan(ImportedPlan& plan) {
  Json tree = plan.tree.json();
  drop_experts(tree);
  drop_unused_recipe(tree);
  const bool has_groups = find_use(plan, "group-query-attention") != nullptr;
  if (!has_groups && tree.contains("model")) tree["model"].erase("num_query_groups");
  const bool has_fused_loss = find_use(plan, "cross-entropy-loss-fusion") != nullptr;
  if (!has_fused_loss && tree.contains("training")) tree["training"].erase("cross_entropy_fusion");
  plan.tree = tree;
  set_recompute(plan);
  set_vocabulary(plan);
  set_scheduled_batch(plan);
  divide_with_ends(plan);
  const Json sequence = said_key(plan, "training.sequence_length");
  if (said_key(plan, "model.max_position_embeddings").is_null() && !sequence.is_null()) {
    set_key(plan, "model.max_position_embeddings", sequence);
  }
  const SourceEntry* samples = find_use(plan, "train-samples");
  if (samples != nullptr && !samples->is_unknown && sequence.is_number_integer()) {
    const int64_t count =
        parse_whole_number(samples->value(), samples->place + ": " + samples->shown());
    int64_t tokens = 0;
    if (!__builtin_mul_overflow(count, sequence.get<int64_t>(), &tokens) && tokens > 0) {
      set_key(plan, "training.tokens", tokens);
    }
  }
}

namespace {

bool is_program(const ProgramRow& row, const TrainingCommand& training, const ImportedPlan& plan) {
  const auto has_argument = [&](const SourceEntry& entry) {
    return std::find(row.arguments.begin(), row.arguments.end(), entry.key) != row.arguments.end();
  };
  return estimator::matches_any_glob(training.program, row.names) ||
         std::any_of(plan.unknown.begin(), plan.unknown.end(), has_argument);
}

void name_program(ImportedPlan& plan, const TrainingCommand& training, const std::string& origin) {
  for (const ProgramRow& row : program_rows()) {
    if (!is_program(row, training, plan)) continue;
    if (row.technique.empty()) return;
    add_technique(plan,
                  row.technique,
                  {.key = training.program,
                   .values = {},
                   .place = fmt::format("{}:{}", origin, training.line)});
    // The program has arguments of its own.
    for (SourceEntry& entry : plan.unknown) add_technique(plan, row.technique, std::move(entry));
    plan.unknown.clear();
    return;
  }
}

}  // namespace

std::optional<ImportedPlan> import_megatron_script(const std::string& text,
                                                   const std::string& origin,
                                                   const ScriptInput& input) {
  const Job job = read_job(text, origin, input);
  std::vector<int> others;
  std::optional<TrainingCommand> training =
      find_training(job.script, ArgumentLines(text, origin), others);
  if (!training) return std::nullopt;
  const LaunchedCluster cluster = launched_cluster(job, *training);
  add_job_variables(job.script, origin, training->entries);
  ImportedPlan plan = import_entries(std::move(training->entries), megatron_table(), origin);
  name_program(plan, *training, origin);
  for (std::string& note : notes_on_others(origin, *training, others, job.script)) {
    plan.notes.push_back(std::move(note));
  }
  set_cluster(cluster, plan);
  finish_megatron_plan(plan);
  return plan;
}

namespace {

/// As the tests' runner gives them to the program: text is divided at its blanks, true is a switch.
SourceEntry entry_of(const std::string& key,
                     const Json& value,
                     const std::string& text,
                     const std::string& origin) {
  SourceEntry entry = {.key = normal_key(key), .values = {}, .place = place_of(key, text, origin)};
  entry.as_written = key;
  if (value.is_array()) {
    for (const Json& item : value) entry.values.push_back(scalar_text(item));
  } else if (!value.is_null() && value != true) {
    std::string words = scalar_text(value);
    const bool is_list =
        words.starts_with('[') && words.ends_with(']') && words.find('*') == words.npos;
    if (is_list) words = words.substr(1, words.size() - 2);
    const bool is_whole = words.find_first_of("(|*") != words.npos;
    std::size_t end = 0;
    for (std::size_t at = 0; (at = words.find_first_not_of(' ', end)) != words.npos;) {
      end = is_whole ? words.size() : std::min(words.find(' ', at), words.size());
      entry.values.push_back(words.substr(at, end - at));
    }
  }
  entry.is_unknown = std::any_of(entry.values.begin(), entry.values.end(), [](const auto& word) {
    return word.find('$') != word.npos;
  });
  return entry;
}

/// The keys that YAML merges in (<<) come first: the arguments' own win.
void add_test_entries(const Json& arguments,
                      const std::string& text,
                      const std::string& origin,
                      std::vector<SourceEntry>& entries) {
  constexpr const char* kMerged = "<<";
  if (arguments.contains(kMerged) && arguments[kMerged].is_object()) {
    add_test_entries(arguments[kMerged], text, origin, entries);
  }
  for (const auto& [key, value] : arguments.items()) {
    if (key != kMerged) entries.push_back(entry_of(key, value, text, origin));
  }
}

}  // namespace

bool is_megatron_test(const Json& tree) {
  return tree.is_object() && tree.contains("MODEL_ARGS") && tree["MODEL_ARGS"].is_object();
}

ImportedPlan import_megatron_test(const Json& tree,
                                  const std::string& text,
                                  const std::string& origin) {
  std::vector<SourceEntry> entries;
  add_test_entries(tree["MODEL_ARGS"], text, origin, entries);
  if (tree.contains("ENV_VARS") && tree["ENV_VARS"].is_object()) {
    for (const auto& [key, value] : tree["ENV_VARS"].items()) {
      if (estimator::contains(job_variables(), key))
        entries.push_back(entry_of(key, value, text, origin));
    }
  }
  ImportedPlan plan = import_entries(std::move(entries), megatron_table(), origin);
  if (tree.contains("MODE") && tree["MODE"] == "inference") {
    add_technique(
        plan,
        "inference",
        {.key = "MODE", .values = {"inference"}, .place = place_of("MODE", text, origin)});
  }
  finish_megatron_plan(plan);
  return plan;
}

}  // namespace sim
