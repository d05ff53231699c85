#include "sim/cli/import/tree_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "estimator/base/database.h"
#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/text.h"
#include "sim/cli/import/switch_words.h"
#include "sim/cli/import/tree_entries.h"
#include "sim/cli/values/strict_number.h"

namespace onerank_data {
extern const std::string_view import_tree_programs_json;
extern const std::string_view import_nanotron_json;
extern const std::string_view import_gpt_neox_json;
extern const std::string_view import_gpt_neox_defaults_json;
extern const std::string_view import_accelerate_json;
extern const std::string_view import_accelerate_defaults_json;
extern const std::string_view import_nanotron_defaults_json;
}  // namespace onerank_data

namespace sim {

/// A program, and what its files mean without saying it.
struct TreeProgramRow {
  std::string program;
  std::vector<std::string> marks;
  estimator::JsonValue plan;
  std::optional<std::string> instead;
};
template <class Visitor>
void visit_fields(Visitor& visit, TreeProgramRow& row) {
  visit("program", row.program, "its name");
  visit("marks",
        row.marks,
        "a file of the program has all keys of one of these, which are divided by blanks");
  visit("plan", row.plan, "the plan of a file that says nothing");
  visit("instead", row.instead, "what people can do; where it is given, its files are not read");
}

namespace {

using estimator::Json;

KeyTable table_of(const std::string& program) {
  KeyTable table{.program = program, .rows = {}, .defaults = {}, .flags = false};
  if (program == "nanotron") {
    table.rows = read_key_rows(onerank_data::import_nanotron_json, "nanotron.json");
    table.defaults = estimator::read_database<DefaultRow>(
        onerank_data::import_nanotron_defaults_json, "nanotron_defaults.json");
  } else if (program == "accelerate") {
    table.switches = accelerate_words();
    table.rows = read_key_rows(onerank_data::import_accelerate_json, "accelerate.json");
    table.defaults = estimator::read_database<DefaultRow>(
        onerank_data::import_accelerate_defaults_json, "accelerate_defaults.json");
  } else {
    table.rows = read_key_rows(onerank_data::import_gpt_neox_json, "gpt_neox.json");
    table.defaults = estimator::read_database<DefaultRow>(
        onerank_data::import_gpt_neox_defaults_json, "gpt_neox_defaults.json");
  }
  return table;
}

const std::vector<TreeProgramRow>& tree_programs() {
  static const auto rows = estimator::read_database<TreeProgramRow>(
      onerank_data::import_tree_programs_json, "tree_programs.json");
  return rows;
}

/// The marks of a program that the entries have; null if they have none.
const std::string* marks_in(const std::vector<SourceEntry>& entries, const TreeProgramRow& row) {
  const auto found = std::find_if(row.marks.begin(), row.marks.end(), [&](const auto& marks) {
    const std::vector<std::string> keys = estimator::split(marks, ' ');
    return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
      return find_entry(entries, key) != nullptr;
    });
  });
  return found == row.marks.end() ? nullptr : &*found;
}

const TreeProgramRow* program_of(const std::vector<SourceEntry>& entries) {
  const std::vector<TreeProgramRow>& rows = tree_programs();
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const TreeProgramRow& row) {
    return marks_in(entries, row) != nullptr;
  });
  return found == rows.end() ? nullptr : &*found;
}

/// Of nanotron, whose degrees multiply to the world, where one machine may hold it.
void set_machine(const std::vector<SourceEntry>& entries, ImportedPlan& plan) {
  constexpr int64_t kMostGpus = 8;
  int64_t gpus = 1;
  for (const char* degree : {"dp", "tp", "pp", "context_parallel_size"}) {
    const SourceEntry* entry = find_entry(entries, std::string("parallelism.") + degree);
    if (entry != nullptr) gpus *= parse_positive_number(entry->value(), entry->place);
    if (gpus > kMostGpus) return;
  }
  set_key(plan, "cluster.nodes", 1);
  set_key(plan, "cluster.gpus_per_node", gpus);
}

/// Of accelerate, which counts the processes of all machines.
void set_machines(const std::vector<SourceEntry>& entries, ImportedPlan& plan) {
  const SourceEntry* processes = find_entry(entries, "num_processes");
  const SourceEntry* hosts = find_entry(entries, "num_machines");
  const bool is_open = hosts != nullptr && hosts->is_unknown;
  if (processes == nullptr || processes->is_unknown || is_open) return;
  const Json said = said_key(plan, "cluster.nodes");
  const int64_t machines = said.is_number_integer() ? said.get<int64_t>() : 1;
  const int64_t gpus = parse_positive_number(processes->value(), processes->place);
  if (machines < 1) return;
  if (gpus % machines != 0) {
    throw estimator::UserError(
        {.what = "the processes do not divide among the machines",
         .where =
             fmt::format("{}: num_processes {}, num_machines {}", processes->place, gpus, machines),
         .help = "num_processes counts those of all machines: give a multiple"});
  }
  set_key(plan, "cluster.nodes", machines);
  set_key(plan, "cluster.gpus_per_node", gpus / machines);
}

int64_t whole_of(const ImportedPlan& plan, const char* path) {
  constexpr int64_t kMost = 1'000'000'000;  // what is larger is refused later
  const Json said = said_key(plan, path);
  return said.is_number_integer() ? std::clamp<int64_t>(said.get<int64_t>(), 0, kMost) : 0;
}

/// ParallelMLP in megatron/model/transformer.py of GPT-NeoX: a gated MLP has two thirds of the
/// width for gate and up together, and each is rounded up to mlp_multiple_of.
void set_mlp_width(const std::vector<SourceEntry>& entries, ImportedPlan& plan) {
  const int64_t said = whole_of(plan, "model.ffn_hidden_size");
  int64_t width = said > 0 ? said : 4 * whole_of(plan, "model.hidden_size");
  const Json activation = said_key(plan, "model.activation");
  if (activation == "swiglu" || activation == "geglu") width = width * 2 / 3 / 2;
  const SourceEntry* rounds = find_entry(entries, "mlp_multiple_of");
  const int64_t multiple =
      rounds == nullptr ? 1 : parse_positive_number(rounds->value(), rounds->place);
  if (width == 0 || multiple > width) return;
  set_key(plan, "model.ffn_hidden_size", (width + multiple - 1) / multiple * multiple);
}

[[noreturn]] void refuse_program(const TreeProgramRow& row,
                                 const std::string& marks,
                                 const std::string& origin) {
  throw estimator::UserError(
      {.what = fmt::format("{} is a configuration of {}, which is not read", origin, row.program),
       .where = fmt::format("its keys: {}", marks),
       .help = *row.instead});
}

ImportedPlan import_program(const TreeProgramRow& row,
                            const std::vector<SourceEntry>& entries,
                            const std::string& origin) {
  ImportedPlan plan = import_entries(entries, table_of(row.program), origin);
  Json whole = row.plan.json();
  if (!plan.tree.json().contains("model")) whole.erase("model");  // it is in another file
  whole.merge_patch(plan.tree.json());
  plan.tree = whole;
  if (row.program == "nanotron") set_machine(entries, plan);
  if (row.program == "GPT-NeoX") set_mlp_width(entries, plan);
  set_machines(entries, plan);
  return plan;
}

}  // namespace

std::optional<ImportedPlan> import_tree_config(const Json& tree,
                                               const std::string& text,
                                               const std::string& origin) {
  if (!tree.is_object()) return std::nullopt;
  const std::vector<SourceEntry> entries = entries_of_tree(tree, text, origin);
  const TreeProgramRow* row = program_of(entries);
  if (row == nullptr) return std::nullopt;
  if (row->instead) refuse_program(*row, *marks_in(entries, *row), origin);
  return import_program(*row, entries, origin);
}

ImportedPlan import_accelerate_entries(const std::vector<SourceEntry>& entries,
                                       const std::string& origin) {
  const auto row = std::find_if(tree_programs().begin(),
                                tree_programs().end(),
                                [](const TreeProgramRow& r) { return r.program == "accelerate"; });
  return import_program(*row, entries, origin);
}

}  // namespace sim
