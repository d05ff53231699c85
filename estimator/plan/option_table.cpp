#include "estimator/plan/option_table.h"

#include <algorithm>

#include "estimator/base/fields.h"
#include "estimator/base/text.h"
#include "estimator/plan/options.h"

namespace estimator {
namespace {

template <class T>
OptionType type_of() {
  if constexpr (fields_detail::IsOptional<T>::value) {
    return type_of<typename T::value_type>();
  } else if constexpr (std::same_as<T, bool>) {
    return OptionType::kSwitch;
  } else if constexpr (std::same_as<T, int64_t>) {
    return OptionType::kWhole;
  } else if constexpr (std::same_as<T, double>) {
    return OptionType::kReal;
  } else if constexpr (std::same_as<T, std::string>) {
    return OptionType::kText;
  } else if constexpr (std::is_enum_v<T>) {
    return OptionType::kChoice;
  } else if constexpr (std::same_as<T, std::vector<int64_t>>) {
    return OptionType::kWholeList;
  } else {
    static_assert(std::same_as<T, std::vector<std::string>>);
    return OptionType::kTextList;
  }
}

template <class T>
std::vector<std::string> choices_of() {
  if constexpr (fields_detail::IsOptional<T>::value) {
    return choices_of<typename T::value_type>();
  } else if constexpr (std::is_enum_v<T>) {
    return names_of<T>();
  } else {
    return {};
  }
}

/// Makes a row of each field that visit_fields() shows it.
struct TableMaker {
  std::string section;
  bool changes_ranks;
  std::vector<PlanOption>& table;

  template <class T>
  void operator()(const char* key, T& value, const Option& said) {
    PlanOption option;
    option.path = section + "." + key;
    option.type = type_of<T>();
    option.help = said.help;
    option.choices = choices_of<T>();
    if (*said.old_key != '\0') option.old_path = section + "." + said.old_key;
    option.changes_ranks = changes_ranks && said.changes_ranks;
    if (const Json json = to_json(value); !json.is_null()) option.default_value = json.dump();
    for (const Flag& flag : said.flags) {
      option.flags.push_back({.names = split(flag.names, ','),
                              .constant = flag.constant,
                              .help = *flag.help == '\0' ? said.help : flag.help,
                              .synonyms = flag.synonyms,
                              .yields = flag.yields});
    }
    table.push_back(std::move(option));
  }
};

template <class Section>
void add_section(const char* name, std::vector<PlanOption>& table, bool changes_ranks = true) {
  Section section;
  TableMaker maker{name, changes_ranks, table};
  visit_fields(maker, section);
}

std::vector<PlanOption> make_table() {
  std::vector<PlanOption> table;
  table.push_back({.path = "model.preset",
                   .help = "a model of `onerank list models`",
                   .flags = {{.names = {"--model"}, .help = "a model of `onerank list models`"}},
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
