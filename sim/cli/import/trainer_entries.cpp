#include "sim/cli/import/trainer_entries.h"

#include <algorithm>
#include <array>
#include <utility>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/base/text.h"
#include "sim/cli/import/key_table.h"
#include "sim/cli/import/tree_entries.h"

namespace sim {
namespace {

using estimator::Json;

void spell_words(SourceEntry& entry) {
  for (std::string& value : entry.values) {
    if (value == "True") value = "true";
    if (value == "False") value = "false";
  }
  constexpr std::string_view kNo = "no-";
  const bool denies = entry.key.starts_with(kNo) && entry.key != "no-cuda" && entry.values.empty();
  if (!denies) return;
  entry.key.erase(0, kNo.size());
  entry.values = {"false"};
}

bool is_null(const SourceEntry& entry) {
  return !entry.values.empty() &&
         std::all_of(entry.values.begin(), entry.values.end(), [](const std::string& value) {
           return value.empty() || value == "None" || value == "null";
         });
}

std::optional<Json> object_in(const SourceEntry& entry) {
  if (entry.values.size() != 1 || !entry.value().starts_with('{')) return std::nullopt;
  try {
    return estimator::parse_json(entry.value(), entry.place);
  } catch (const estimator::UserError&) {
    return std::nullopt;  // Python's own spelling, or a variable of the shell
  }
}

void add_keys_of(const SourceEntry& entry, const Json& object, std::vector<SourceEntry>& entries) {
  for (SourceEntry& inner : entries_of_tree(object, "", entry.place)) {
    inner.key = entry.key + "." + inner.key;
    inner.as_written = entry.shown() + "." + inner.as_written;
    spell_words(inner);
    entries.push_back(std::move(inner));
  }
}

/// --fsdp "full_shard auto_wrap", or a list of words; alone it means full_shard.
void add_fsdp(const SourceEntry& entry, std::vector<SourceEntry>& entries) {
  std::vector<std::string> words = {};
  for (const std::string& value : entry.values) {
    for (const std::string& word : estimator::split(value, ' ')) words.push_back(word);
  }
  if (entry.values.empty()) words = {"true"};
  for (const std::string& word : words) {
    if (word.empty() || word == "false") continue;
    SourceEntry option = entry;
    option.key = "fsdp." + normal_key(word);
    entries.push_back(std::move(option));
  }
}

/// Keys of FSDP may have its name before them.
void drop_prefix(SourceEntry& entry) {
  constexpr std::string_view kLong = "fsdp-config.fsdp-";
  constexpr std::string_view kShort = "fsdp-config.";
  if (entry.key.starts_with(kLong)) entry.key.replace(0, kLong.size(), kShort);
}

}  // namespace

std::vector<SourceEntry> trainer_entries(std::vector<SourceEntry> entries) {
  std::vector<SourceEntry> all;
  for (SourceEntry& entry : entries) {
    spell_words(entry);
    if (is_null(entry)) continue;
    if (const auto object = object_in(entry)) {
      add_keys_of(entry, *object, all);
    } else if (entry.key == "fsdp") {
      add_fsdp(entry, all);
    } else {
      all.push_back(std::move(entry));
    }
  }
  for (SourceEntry& entry : all) drop_prefix(entry);
  return all;
}

std::vector<SourceEntry> take_entries(const std::string& key, std::vector<SourceEntry>& entries) {
  std::vector<SourceEntry> taken;
  std::vector<SourceEntry> kept;
  for (SourceEntry& entry : entries) {
    const bool is_it = entry.key == key || entry.key.starts_with(key + ".");
    (is_it ? taken : kept).push_back(std::move(entry));
  }
  entries = std::move(kept);
  return taken;
}

std::vector<SourceEntry> accelerate_entries(const std::vector<SourceEntry>& launcher) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTypes = {
      {{"use-fsdp", "FSDP"},
       {"use-deepspeed", "DEEPSPEED"},
       {"use-megatron-lm", "MEGATRON_LM"},
       {"multi-gpu", "MULTI_GPU"}}};
  constexpr std::array<std::string_view, 3> kOwn = {
      "mixed-precision", "num-processes", "num-machines"};
  // Flags of the launcher are keys of parts of its file, by the same names.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kParts = {
      {{"fsdp-", "fsdp-config."},
       {"parallelism-config-", "parallelism-config."},
       {"megatron-lm-", "megatron-lm-config."}}};
  std::vector<SourceEntry> entries;
  for (SourceEntry entry : launcher) {
    for (const auto& [flag, type] : kTypes) {
      if (entry.key != flag) continue;
      entry.key = "distributed-type";
      entry.values = {std::string(type)};
    }
    const bool is_deepspeeds = entry.key == "zero-stage" || entry.key.starts_with("offload-") ||
                               entry.key == "deepspeed-config-file" ||
                               entry.key == "gradient-accumulation-steps";
    const auto* const part = std::find_if(kParts.begin(), kParts.end(), [&](const auto& flags) {
      return entry.key.starts_with(flags.first);
    });
    if (part != kParts.end()) entry.key.insert(0, part->second);
    if (is_deepspeeds) entry.key.insert(0, "deepspeed-config.");
    const bool is_known = entry.key.find('.') != std::string::npos ||
                          entry.key == "distributed-type" ||
                          std::find(kOwn.begin(), kOwn.end(), entry.key) != kOwn.end();
    if (is_known) entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace sim
