// All options of a plan as a table, made from the lines of options.h.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/enum_names.h"
#include "estimator/base/json.h"
#include "estimator/base/option.h"

namespace estimator {

/// The type of an option's value.
enum class OptionType { kSwitch, kWhole, kReal, kText, kChoice, kWholeList, kTextList };
constexpr std::array<EnumName<OptionType>, 7> enum_names(OptionType) {
  return {{{OptionType::kSwitch, "boolean"},
           {OptionType::kWhole, "integer"},
           {OptionType::kReal, "number"},
           {OptionType::kText, "text"},
           {OptionType::kChoice, "choice"},
           {OptionType::kWholeList, "integers"},
           {OptionType::kTextList, "texts"}}};
}

/// A Flag that owns its texts.
struct OptionFlag {
  std::vector<std::string> names;  ///< Megatron-LM's name first, the usual short name last
  std::string constant;            ///< JSON
  std::string help;
  std::string synonyms;
  bool yields = false;
  bool is_ours = false;  ///< Megatron-LM has no such flag
};
template <class Visitor>
void visit_fields(Visitor& visit, OptionFlag& flag) {
  visit("names", flag.names, "Megatron-LM's first");
  visit("constant", flag.constant, "what it writes, as JSON, when it takes no value");
  visit("help", flag.help, "what it means");
  visit("synonyms", flag.synonyms, "Megatron-LM's word = the plan's");
}

struct PlanOption {
  std::string path;  ///< "parallelism.tensor"
  OptionType type = OptionType::kText;
  std::string help;
  /// As JSON; empty: "auto" (it follows from other options), or somebody has to say it.
  std::optional<std::string> default_value;
  std::vector<std::string> choices;  ///< the values of a choice
  std::vector<OptionFlag> flags;
  std::string old_path;        ///< its path in older versions; mostly ""
  bool changes_ranks = true;   ///< false: the profile of a rank is the same with any value
  bool must_be_given = false;  ///< without a preset; nothing holds where nobody says it

  /// "parallelism" and "tensor".
  std::string section() const { return path.substr(0, path.find('.')); }
  std::string key() const { return path.substr(path.find('.') + 1); }
};
template <class Visitor>
void visit_fields(Visitor& visit, PlanOption& option) {
  visit("path", option.path, "section and key of the plan");
  visit("type", option.type, "of its value");
  visit("help", option.help, "what it means");
  visit("default",
        option.default_value,
        "as JSON; left out: it follows from others, or has to be given");
  visit("choices", option.choices, "the words that it may be");
  visit("flags", option.flags, "that say it on the command line");
  visit("changes_ranks", option.changes_ranks, "whether it changes what single ranks run");
}

/// All options, in the order of options.h: model, cluster, parallelism, training, memory, time,
/// reliability.
const std::vector<PlanOption>& plan_options();

/// The option at a path, or at its old path; null when there is none.
const PlanOption* find_plan_option(std::string_view path);

/// The name of the first flag that sets the option at a path: "--num-layers". Throws
/// std::logic_error if there is none.
const std::string& first_flag_of(std::string_view path);

/// Renames the old keys in a plan's tree to their new names. If both are given, the old key stays,
/// and the reader refuses it.
Json with_new_keys(Json tree);

}  // namespace estimator
