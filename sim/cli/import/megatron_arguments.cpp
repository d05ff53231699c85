#include "sim/cli/import/megatron_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "estimator/base/contains.h"
#include "estimator/base/database.h"
#include "estimator/base/fields.h"
#include "estimator/base/glob.h"
#include "sim/cli/import/finish_megatron_plan.h"
#include "sim/cli/import/launcher_words.h"
#include "sim/cli/import/training_command.h"
#include "sim/cli/import/tree_entries.h"
#include "sim/cli/values/plan_flag_table.h"

namespace onerank_data {
extern const std::string_view import_megatron_json;
extern const std::string_view import_megatron_defaults_json;
extern const std::string_view import_megatron_programs_json;
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

namespace {

using estimator::Json;

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
