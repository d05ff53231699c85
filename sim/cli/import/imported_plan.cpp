#include "sim/cli/import/imported_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "estimator/base/fields.h"
#include "estimator/base/glob.h"
#include "estimator/resolve/plan_tree.h"
#include "sim/cli/import/switch_words.h"
#include "sim/cli/values/flag_value.h"
#include "sim/cli/values/plan_flag_table.h"

namespace sim {
namespace {

/// YAML lets digits be separated: 70_000.
std::string without_digit_separators(std::string text) {
  const bool is_number = !text.empty() && text.find_first_not_of("0123456789_") == text.npos;
  if (is_number) std::erase(text, '_');
  return text;
}

using estimator::Json;
using estimator::Problem;
using estimator::UserError;

const PlanFlag* find_plan_flag(const std::string& key) {
  static const auto flags = [] {
    std::map<std::string, const PlanFlag*> by_name;
    for (const PlanFlagGroup& group : plan_flag_groups()) {
      for (const PlanFlag& flag : group.flags) {
        for (const std::string& name : flag.said.names) by_name.emplace(normal_key(name), &flag);
      }
    }
    return by_name;
  }();
  const auto found = flags.find(key);
  return found == flags.end() ? nullptr : found->second;
}

/// Flags of Megatron-LM that PipelineLayers reads.
bool divides_stages(const std::string& key) {
  return key == "decoder-first-pipeline-num-layers" || key == "decoder-last-pipeline-num-layers" ||
         key == "num-layers-per-virtual-pipeline-stage" || key == "pipeline-model-parallel-layout";
}

class Importer {
 public:
  Importer(std::vector<SourceEntry> entries, const KeyTable& table, const std::string& origin)
      : entries_(std::move(entries)), table_(table) {
    plan_.origin = origin;
    plan_.program = table.program;
    plan_.tree = Json::object();
  }

  ImportedPlan import() && {
    keep_the_last();
    refuse_too_many();
    add_defaults();
    for (const SourceEntry& entry : entries_) place(entry);
    std::vector<Problem> problems = std::move(problems_);
    if (!problems.empty()) throw UserError(std::move(problems));
    plan_.tree = tree_;
    return std::move(plan_);
  }

 private:
  void keep_the_last() {
    std::map<std::string, std::size_t> last;
    for (std::size_t i = 0; i < entries_.size(); ++i) last[entries_[i].key] = i;
    std::vector<SourceEntry> kept;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (last[entries_[i].key] == i) kept.push_back(std::move(entries_[i]));
    }
    entries_ = std::move(kept);
  }

  void refuse_too_many() const {
    constexpr std::size_t kMostEntries = 10'000;
    if (entries_.size() <= kMostEntries) return;
    throw UserError(
        {.what = plan_.origin + " has too many keys",
         .where = fmt::format("{}, of which {} are read", entries_.size(), kMostEntries),
         .help = "give a file with the keys of one training"});
  }

  const SourceEntry* find(const std::string& key) const {
    for (const SourceEntry& entry : entries_) {
      if (entry.key == key) return &entry;
    }
    return nullptr;
  }

  void add_defaults() {
    // "key", or "key=value".
    const auto has = [&](const std::string& condition) {
      const std::size_t equals = condition.find('=');
      const SourceEntry* entry = find(condition.substr(0, equals));
      if (entry == nullptr || equals == std::string::npos) return entry != nullptr;
      return matches_any(*entry, {condition.substr(equals + 1)});
    };
    for (const DefaultRow& row : table_.defaults) {
      if (std::any_of(row.unless.begin(), row.unless.end(), has)) continue;
      if (!row.when.empty() && std::none_of(row.when.begin(), row.when.end(), has)) continue;
      std::vector<std::string> values;
      if (!row.value.empty()) values.push_back(row.value);
      entries_.push_back(
          {.key = row.key, .values = std::move(values), .place = "default of " + table_.program});
    }
  }

  static bool matches_any(const SourceEntry& entry, const std::vector<std::string>& patterns) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
      if (entry.values.empty()) return pattern.empty() || (pattern == "true" && !entry.is_null);
      return std::all_of(entry.values.begin(), entry.values.end(), [&](const std::string& value) {
        return estimator::matches_glob(value, pattern);
      });
    });
  }

  bool holds(const KeyRow& row, const SourceEntry& entry) const {
    if (!row.only.empty() && !matches_any(entry, row.only)) return false;
    if (!row.unless.empty() && matches_any(entry, row.unless)) return false;
    if (row.when.empty()) return true;
    return std::any_of(row.when.begin(), row.when.end(), [&](const KeyCondition& condition) {
      const SourceEntry* other = find(condition.key);
      return other != nullptr && matches_any(*other, condition.values);
    });
  }

  enum class Match { kNone, kName, kRow };

  /// Looks among the rows that have the key's own name, or among those with patterns. kName: there
  /// are such rows, but none of them holds.
  std::pair<Match, const KeyRow*> find_row(const SourceEntry& entry, bool by_pattern) const {
    Match match = Match::kNone;
    for (const KeyRow& row : table_.rows) {
      const bool is_named =
          std::any_of(row.keys.begin(), row.keys.end(), [&](const std::string& key) {
            const bool is_pattern = key.find('*') != key.npos;
            if (is_pattern != by_pattern) return false;
            return is_pattern ? estimator::matches_glob(entry.key, key) : key == entry.key;
          });
      if (!is_named) continue;
      if (holds(row, entry)) return {Match::kRow, &row};
      match = Match::kName;
    }
    return {match, nullptr};
  }

  /// Words behind a key that cannot be its value.
  void set_words_apart(SourceEntry& entry) {
    const PlanFlag* flag = table_.flags ? find_plan_flag(entry.key) : nullptr;
    if (entry.open.empty() || flag == nullptr) return;
    const bool is_value = entry.is_unknown && !flag->is_switch();
    for (std::size_t i = is_value ? 1 : 0; i < entry.open.size(); ++i) {
      plan_.open.push_back({.key = entry.open[i], .values = {}, .place = entry.place});
    }
    if (!flag->is_switch() || !entry.is_unknown) return;
    entry.is_unknown = false;
    entry.values.clear();
  }

  void place(SourceEntry entry) {
    if (entry.may_be_arguments) return plan_.open.push_back(entry);
    set_words_apart(entry);
    const auto [by_name, named_row] = find_row(entry, false);
    if (by_name == Match::kRow) return apply(*named_row, entry);
    if (table_.flags) {
      if (divides_stages(entry.key)) return add_stage_flag(entry);
      if (const PlanFlag* flag = find_plan_flag(entry.key)) return apply(*flag, entry);
    }
    const auto [by_pattern, row] = find_row(entry, true);
    if (by_pattern == Match::kRow) return apply(*row, entry);
    const bool is_known = by_name == Match::kName || by_pattern == Match::kName;
    (is_known ? plan_.without_effect : plan_.unknown).push_back(entry);
  }

  void apply(const KeyRow& row, const SourceEntry& entry) {
    if (!row.technique.empty()) add_technique(plan_, row.technique, entry);
    if (!row.note.empty())
      plan_.notes.push_back(fmt::format("{}: {}", entry.with_place(), row.note));
    if (row.path.empty()) {
      if (row.technique.empty()) plan_.without_effect.push_back(entry);
      return;
    }
    const auto* option = estimator::find_plan_option(row.path);
    if (option == nullptr) throw std::logic_error("no such option: " + row.path);
    if (row.constant.empty() && is_unset(entry, row.path)) return;
    try_to(
        [&] {
          const std::string text =
              row.constant.empty() ? text_of(row, entry, option->type) : row.constant;
          Json value = option_value(option->type, text, entry.key);
          if (row.added != 0) value = value.get<int64_t>() + row.added;
          write(row.path, value, entry);
        },
        entry);
  }

  static std::string text_of(const KeyRow& row,
                             const SourceEntry& entry,
                             estimator::OptionType type) {
    if (row.added != 0) return first_number(entry.value());
    return translated(without_digit_separators(joined(entry, type)), row.words);
  }

  /// "127" of "(127, 0)".
  static std::string first_number(std::string text) {
    if (text.starts_with('(')) text.erase(0, 1);
    return text.substr(0, text.find_first_of(",)"));
  }

  void apply(const PlanFlag& flag, const SourceEntry& entry) {
    if (flag.path.empty()) {
      plan_.without_effect.push_back(entry);
      return;
    }
    if (!flag.is_switch() && is_unset(entry, flag.path)) return;
    try_to(
        [&] {
          const std::string text = flag.is_switch() ? switch_text(entry) : joined(entry, flag.type);
          const bool yields = flag.said.yields && written_.contains(flag.path);
          if (!yields) write(flag.path, flag_value(flag, text), entry);
        },
        entry);
  }

  /// A switch alone is on; trees have true and false. What nobody sets may be nothing at all.
  static std::string switch_text(const SourceEntry& entry) {
    const std::string value = entry.value();
    if (value.empty() || value == "True" || entry.is_unknown) return "true";
    return value == "False" ? "false" : value;
  }

  /// A pattern of layers may have been divided at its blanks; words of a list are.
  static std::string joined(const SourceEntry& entry, estimator::OptionType type) {
    using enum estimator::OptionType;
    if (type == kWholeList) return fmt::format("{}", fmt::join(entry.values, ""));
    return type == kTextList ? fmt::format("{}", fmt::join(entry.values, ",")) : entry.value();
  }

  bool is_unset(const SourceEntry& entry, const std::string& path) {
    if (!entry.is_unknown && !entry.values.empty()) return false;
    plan_.unset.push_back({entry, path});
    return true;
  }

  void add_stage_flag(const SourceEntry& entry) {
    if (is_unset(entry, "parallelism.layers_per_stage")) return;
    plan_.stage_flags.emplace_back("--" + entry.key, entry.value());
    plan_.modelled.push_back(entry);
  }

  void write(const std::string& path, Json value, const SourceEntry& entry) {
    estimator::set_in_tree(tree_, path, std::move(value), entry.place);
    written_.insert(path);
    plan_.modelled.push_back(entry);
  }

  template <class Write>
  void try_to(const Write& write, const SourceEntry& entry) {
    try {
      write();
    } catch (const UserError& error) {
      for (Problem problem : error.problems()) {
        problem.where = entry.with_place();
        problems_.push_back(std::move(problem));
      }
    }
  }

  std::vector<SourceEntry> entries_;
  const KeyTable& table_;
  ImportedPlan plan_;
  Json tree_ = Json::object();
  std::set<std::string> written_;
  std::vector<Problem> problems_;
};

}  // namespace

ImportedPlan import_entries(std::vector<SourceEntry> entries,
                            const KeyTable& table,
                            const std::string& origin) {
  spell_switches(entries, table);
  return Importer(std::move(entries), table, origin).import();
}

void add_technique(ImportedPlan& plan, const std::string& name, SourceEntry use) {
  const Technique& technique = technique_named(name);
  for (UsedTechnique& used : plan.techniques) {
    if (used.technique == &technique) return used.uses.push_back(std::move(use));
  }
  plan.techniques.push_back({&technique, {std::move(use)}});
}

void set_key(ImportedPlan& plan, const std::string& path, const Json& value) {
  Json tree = plan.tree.json();
  estimator::set_in_tree(tree, path, value, plan.origin);
  plan.tree = tree;
}

Json said_key(const ImportedPlan& plan, const std::string& path) {
  return estimator::find_in_tree(plan.tree.json(), path);
}

void merge_under(ImportedPlan& plan, ImportedPlan other) {
  Json tree = other.tree.json();
  tree.merge_patch(plan.tree.json());
  plan.tree = tree;
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(plan.modelled, other.modelled);
  append(plan.without_effect, other.without_effect);
  append(plan.unknown, other.unknown);
  append(plan.open, other.open);
  append(plan.unset, other.unset);
  append(plan.notes, other.notes);
  for (UsedTechnique& used : other.techniques) {
    for (SourceEntry& use : used.uses) add_technique(plan, used.technique->name, std::move(use));
  }
}

}  // namespace sim
