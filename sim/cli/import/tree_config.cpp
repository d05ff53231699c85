#include "sim/cli/import/tree_config.h"

#include <algorithm>
#include <string_view>

#include "estimator/base/database.h"
#include "sim/cli/import/tree_entries.h"
#include "sim/cli/values/strict_number.h"

namespace onerank_data {
extern const std::string_view import_tree_programs_json;
extern const std::string_view import_nanotron_json;
extern const std::string_view import_gpt_neox_json;
}  // namespace onerank_data

namespace sim {

/// A program, and what its files mean without saying it.
struct TreeProgramRow {
  std::string program;
  std::vector<std::string> marks;
  estimator::JsonValue plan;
};
template <class Visitor>
void visit_fields(Visitor& visit, TreeProgramRow& row) {
  visit("program", row.program, "its name");
  visit("marks", row.marks, "keys that all of its files have");
  visit("plan", row.plan, "the plan of a file that says nothing");
}

namespace {

using estimator::Json;

std::vector<KeyRow> rows_of(const std::string& program) {
  return program == "nanotron" ? read_key_rows(onerank_data::import_nanotron_json, "nanotron.json")
                               : read_key_rows(onerank_data::import_gpt_neox_json, "gpt_neox.json");
}

const SourceEntry* find_entry(const std::vector<SourceEntry>& entries, const std::string& key) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const SourceEntry& entry) {
    return entry.key == normal_key(key);
  });
  return found == entries.end() ? nullptr : &*found;
}

const TreeProgramRow* program_of(const std::vector<SourceEntry>& entries) {
  static const auto rows = estimator::read_database<TreeProgramRow>(
      onerank_data::import_tree_programs_json, "tree_programs.json");
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const TreeProgramRow& row) {
    return std::all_of(row.marks.begin(), row.marks.end(), [&](const std::string& mark) {
      return find_entry(entries, mark) != nullptr;
    });
  });
  return found == rows.end() ? nullptr : &*found;
}

/// micro-batch x accumulation x data ranks, where the file gives the accumulation and the ranks.
void set_batch(const std::vector<SourceEntry>& entries, ImportedPlan& plan) {
  const SourceEntry* steps = find_entry(entries, "tokens.batch_accumulation_per_replica");
  const Json micro = said_key(plan, "training.micro_batch_size");
  const Json data = said_key(plan, "parallelism.data");
  if (steps == nullptr || !micro.is_number_integer() || !data.is_number_integer()) return;
  int64_t batch = parse_whole_number(steps->value(), steps->place);
  const bool overflows = __builtin_mul_overflow(batch, micro.get<int64_t>(), &batch) ||
                         __builtin_mul_overflow(batch, data.get<int64_t>(), &batch);
  if (!overflows) set_key(plan, "training.global_batch_size", batch);
}

}  // namespace

std::optional<ImportedPlan> import_tree_config(const Json& tree,
                                               const std::string& text,
                                               const std::string& origin) {
  if (!tree.is_object()) return std::nullopt;
  const std::vector<SourceEntry> entries = entries_of_tree(tree, text, origin);
  const TreeProgramRow* row = program_of(entries);
  if (row == nullptr) return std::nullopt;
  const KeyTable table = {
      .program = row->program, .rows = rows_of(row->program), .defaults = {}, .flags = false};
  ImportedPlan plan = import_entries(entries, table, origin);
  Json whole = row->plan.json();
  whole.merge_patch(plan.tree.json());
  plan.tree = whole;
  set_batch(entries, plan);
  return plan;
}

}  // namespace sim
