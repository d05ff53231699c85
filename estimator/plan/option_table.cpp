#include "estimator/plan/option_table.h"

#include <algorithm>
#include <stdexcept>

#include "estimator/base/fields.h"
#include "estimator/base/text.h"
#include "estimator/plan/options.h"

namespace estimator {
namespace {

OptionType list_type_of(const FieldType& entry) {
  return entry.form == FieldForm::kWhole ? OptionType::kWholeList : OptionType::kTextList;
}

OptionType type_of(const FieldType& type) {
  switch (type.form) {
    case FieldForm::kSwitch:
      return OptionType::kSwitch;
    case FieldForm::kWhole:
      return OptionType::kWhole;
    case FieldForm::kReal:
      return OptionType::kReal;
    case FieldForm::kText:
      return OptionType::kText;
    case FieldForm::kChoice:
      return OptionType::kChoice;
    case FieldForm::kOptional:
      return type_of(*type.inner);
    case FieldForm::kList:
      return list_type_of(*type.inner);
    case FieldForm::kObject:
    case FieldForm::kJson:
      break;
  }
  throw std::logic_error("no option of a plan is an object");
}

std::vector<std::string> choices_of(const FieldType& type) {
  if (type.form == FieldForm::kOptional) return choices_of(*type.inner);
  return type.form == FieldForm::kChoice ? type.names() : std::vector<std::string>{};
}

/// Makes a row of each field that visit_fields() shows it.
class TableMaker : public FieldVisitor {
 public:
  TableMaker(std::string section, bool changes_ranks, std::vector<PlanOption>& table)
      : section_(std::move(section)), changes_ranks_(changes_ranks), table_(table) {}

 private:
  void visit(const char* key, void* value, const FieldType& type, const Option& said) override {
    PlanOption option;
    option.path = section_ + "." + key;
    option.type = type_of(type);
    option.help = said.help;
    option.choices = choices_of(type);
    if (*said.old_key != '\0') option.old_path = section_ + "." + said.old_key;
    option.changes_ranks = changes_ranks_ && said.changes_ranks;
    const Json left_out = default_json(key, value, type, said.range);
    if (!left_out.is_null()) option.default_value = left_out.dump();
    option.must_be_given = left_out.is_null() && type.form != FieldForm::kOptional;
    for (const Flag& flag : said.flags) {
      option.flags.push_back({.names = split(flag.names, ','),
                              .constant = flag.constant,
                              .help = *flag.help == '\0' ? said.help : flag.help,
                              .synonyms = flag.synonyms,
                              .yields = flag.yields,
                              .is_ours = flag.is_ours});
    }
    table_.push_back(std::move(option));
  }

  std::string section_;
  bool changes_ranks_;
  std::vector<PlanOption>& table_;
};

template <class Section>
void add_section(const char* name, std::vector<PlanOption>& table, bool changes_ranks = true) {
  TableMaker maker(name, changes_ranks, table);
  kFieldType<Section>.visit_new(maker);
}

std::vector<PlanOption> make_table() {
  std::vector<PlanOption> table;
  table.push_back({.path = "model.preset",
                   .help = "a model of `onerank list models`",
                   .flags = {{.names = {"--model"},
                              .help = "a model of `onerank list models`",
                              .is_ours = true}},
                   .changes_ranks = false});  // what it stands for does, and is compared itself
  add_section<ModelConfig>("model", table);
  add_section<ClusterConfig>("cluster", table);
  add_section<ParallelConfig>("parallelism", table);
  add_section<TrainingConfig>("training", table);
  add_section<MemoryConfig>("memory", table);
  add_section<TimeConfig>("time", table, false);
  add_section<ReliabilityConfig>("reliability", table, false);
  return table;
}

}  // namespace

const std::vector<PlanOption>& plan_options() {
  static const std::vector<PlanOption> table = make_table();
  return table;
}

const PlanOption* find_plan_option(std::string_view path) {
  const std::vector<PlanOption>& table = plan_options();
  const auto found = std::find_if(table.begin(), table.end(), [&](const PlanOption& option) {
    return option.path == path || (!option.old_path.empty() && option.old_path == path);
  });
  return found == table.end() ? nullptr : &*found;
}

const std::string& first_flag_of(std::string_view path) {
  const PlanOption* option = find_plan_option(path);
  if (option == nullptr || option->flags.empty()) {
    throw std::logic_error("no flag sets " + std::string(path));
  }
  return option->flags.front().names.front();
}

Json with_new_keys(Json tree) {
  for (const PlanOption& option : plan_options()) {
    if (option.old_path.empty() || !tree.is_object() || !tree.contains(option.section())) continue;
    Json& section = tree[option.section()];
    const std::string old_key = option.old_path.substr(option.section().size() + 1);
    if (!section.is_object() || !section.contains(old_key) || section.contains(option.key())) {
      continue;
    }
    section[option.key()] = section[old_key];
    section.erase(old_key);
  }
  return tree;
}

}  // namespace estimator
