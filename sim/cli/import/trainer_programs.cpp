#include "sim/cli/import/trainer_programs.h"

#include <algorithm>

#include "estimator/base/database.h"
#include "estimator/base/glob.h"
#include "estimator/base/text.h"
#include "sim/cli/import/switch_words.h"
#include "sim/cli/import/tree_entries.h"

namespace onerank_data {
extern const std::string_view import_axolotl_json;
extern const std::string_view import_llama_factory_json;
extern const std::string_view import_trainer_json;
extern const std::string_view import_trainer_defaults_json;
extern const std::string_view import_trainer_programs_json;
}  // namespace onerank_data

namespace sim {
namespace {

const std::vector<TrainerProgram>& trainer_programs() {
  static const auto rows = estimator::read_database<TrainerProgram>(
      onerank_data::import_trainer_programs_json, "trainer_programs.json");
  return rows;
}

/// Whether the words from `at` on are those of the pattern.
bool starts_at(const std::vector<ShellWord>& words,
               std::size_t at,
               const std::vector<std::string>& patterns) {
  if (at + patterns.size() > words.size()) return false;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    if (!estimator::matches_glob(words[at + i].text, patterns[i])) return false;
  }
  return true;
}

/// Of programs that their words alone tell: `trl sft`, `python -m axolotl.cli.train`.
ProgramWords named_words(const ShellCommand& command) {
  for (std::size_t at = 0; at < command.words.size(); ++at) {
    for (const TrainerProgram& row : trainer_programs()) {
      if (!row.alone) continue;
      for (const std::string& pattern : row.commands) {
        const std::vector<std::string> patterns = estimator::split(pattern, ' ');
        if (starts_at(command.words, at, patterns)) return {.at = at, .count = patterns.size()};
      }
    }
  }
  return {};
}

void add_rows(std::string_view text, const std::string& name, std::vector<KeyRow>& rows) {
  for (KeyRow& row : read_key_rows(text, name)) rows.push_back(std::move(row));
}

}  // namespace

const TrainerProgram* trainer_program_of(const TrainingCommand& command) {
  if (command.program.empty()) return nullptr;
  for (const TrainerProgram& row : trainer_programs()) {
    if (estimator::matches_any_glob(command.program, row.commands)) return &row;
  }
  return nullptr;
}

ProgramWords trainer_program_words(const ShellCommand& command) {
  const ProgramWords named = named_words(command);
  return named.count > 0 ? named : python_program(command);
}

const TrainerProgram* trainer_program_of(const std::vector<SourceEntry>& entries) {
  for (const TrainerProgram& row : trainer_programs()) {
    for (const std::string& marks : row.marks) {
      const std::vector<std::string> keys = estimator::split(marks, ' ');
      const bool has_all = std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
        return find_entry(entries, key) != nullptr;
      });
      if (has_all) return &row;
    }
  }
  return nullptr;
}

KeyTable trainer_table(const std::string& program) {
  KeyTable table{.program = program, .switches = trainer_words()};
  if (program == "axolotl") {
    add_rows(onerank_data::import_axolotl_json, "axolotl.json", table.rows);
  }
  if (program == "LLaMA-Factory") {
    add_rows(onerank_data::import_llama_factory_json, "llama_factory.json", table.rows);
  }
  add_rows(onerank_data::import_trainer_json, "trainer.json", table.rows);
  table.rows.insert(table.rows.end(), environment_rows().begin(), environment_rows().end());
  table.defaults = estimator::read_database<DefaultRow>(onerank_data::import_trainer_defaults_json,
                                                        "trainer_defaults.json");
  return table;
}

}  // namespace sim
