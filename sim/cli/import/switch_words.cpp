#include "sim/cli/import/switch_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "estimator/base/contains.h"
#include "estimator/base/errors.h"
#include "estimator/base/glob.h"
#include "estimator/base/text.h"

namespace sim {
namespace {

using estimator::contains;
using estimator::Problem;

bool names_key(const KeyRow& row, const std::string& key) {
  return estimator::matches_any_glob(key, row.keys);
}

bool has_word(const std::vector<std::string>& words, const std::string& word) {
  return contains(words, word);
}

bool is_row_of_switch(const KeyRow& row) {
  return has_word(row.only, "true") || has_word(row.only, "false") ||
         (has_word(row.unless, "false") && !has_word(row.unless, "0"));
}

/// What a file leaves to somebody else: "auto", "$FLAG", "{{ flag }}".
bool is_left_open(const SourceEntry& entry, const std::string& value) {
  return entry.is_unknown || value.empty() || value == "auto" || value.front() == '$' ||
         value.front() == '{';
}

/// Whether the key, which is a switch, may have such a word beside those of switches.
bool may_have(const KeyTable& table, const std::string& key, const std::string& value) {
  bool is_plain = false;
  for (const KeyRow& row : table.rows) {
    if (!names_key(row, key)) continue;
    if (!row.unless.empty()) return true;
    is_plain = is_plain || has_word(row.only, "true");
    if (estimator::matches_any_glob(value, row.only)) return true;
  }
  return !is_plain;
}

}  // namespace

SwitchWords trainer_words() {
  return {.yes = {"yes", "true", "t", "y", "1"}, .no = {"no", "false", "f", "n", "0"}};
}

SwitchWords accelerate_words() {
  return {.yes = {"y", "yes", "t", "true", "on", "1"}, .no = {"n", "no", "f", "false", "off", "0"}};
}

bool is_switch(const KeyTable& table, const std::string& key) {
  return std::any_of(table.rows.begin(), table.rows.end(), [&](const KeyRow& row) {
    return is_row_of_switch(row) && names_key(row, key);
  });
}

void spell_switches(std::vector<SourceEntry>& entries, const KeyTable& table) {
  const SwitchWords& words = table.switches;
  if (words.yes.empty()) return;
  std::vector<Problem> problems;
  for (SourceEntry& entry : entries) {
    if (entry.values.size() != 1 || !is_switch(table, entry.key)) continue;
    std::string& value = entry.values.front();
    const std::string word = estimator::lower_case(value);
    if (contains(words.yes, word)) {
      value = "true";
    } else if (contains(words.no, word)) {
      value = "false";
    } else if (!is_left_open(entry, value) && !may_have(table, entry.key, value)) {
      problems.push_back({.what = fmt::format("{} is on or off", entry.shown()),
                          .where = fmt::format("{}: {} {}", entry.place, entry.shown(), value),
                          .help = fmt::format("{} has the words {}, and {}",
                                              table.program,
                                              fmt::join(words.yes, ", "),
                                              fmt::join(words.no, ", "))});
    }
  }
  if (!problems.empty()) throw estimator::UserError(std::move(problems));
}

}  // namespace sim
