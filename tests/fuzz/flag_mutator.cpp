// For targets whose inputs are flags, one argument in each line. Two inputs in three differ in what
// the key of a flag can be, so that many are accepted; the others in anything anywhere.
#include <algorithm>
#include <charconv>

#include "estimator/hardware/hardware.h"
#include "estimator/plan/model_config.h"
#include "estimator/plan/option_table.h"
#include "sim/cli/values/plan_flag_table.h"
#include "tests/fuzz/arguments.h"
#include "tests/fuzz/json_mutation.h"

namespace fuzz {
namespace {

constexpr const char* kValues[] = {
    "0",    "1",    "2",       "3",    "4",    "8",     "16",      "64",   "100",  "128",
    "1000", "4096", "1000000", "1e9",  "1e18", "0.5",   "1e308",   "-1",   "nan",  "2147483648",
    "",     "auto", "true",    "fp16", "bf16", "flash", "unfused", "full", "gpt2", "b200",
    "v100", "1,2",  "adam",    "sgd",  "rope", "none",  "plain",   "1f1b", "gpipe"};

using estimator::OptionType;
using sim::PlanFlag;
using Lines = std::vector<std::string>;

const PlanFlag& any_flag(Random& random) {
  return random.pick(random.pick(sim::plan_flag_groups()).flags);
}

std::string any_name(const PlanFlag& flag, Random& random) { return random.pick(flag.said.names); }

struct KnownFlag {
  const sim::PlanFlagGroup* group = nullptr;
  const PlanFlag* flag = nullptr;
};

/// The flag that a line begins with, if it is one.
KnownFlag flag_of(const std::string& line) {
  const std::string name = line.substr(0, line.find('='));
  for (const sim::PlanFlagGroup& group : sim::plan_flag_groups()) {
    for (const PlanFlag& flag : group.flags) {
      const std::vector<std::string>& names = flag.said.names;
      if (std::find(names.begin(), names.end(), name) != names.end()) return {&group, &flag};
    }
  }
  return {};
}

template <class Entry>
Lines names_of(const std::vector<Entry>& entries, std::string Entry::*name) {
  Lines names;
  for (const Entry& entry : entries) names.push_back(entry.*name);
  return names;
}

/// The words that a key of a plan can be.
Lines words_of(const std::string& path) {
  if (path == "model.preset") {
    return names_of(estimator::model_presets(), &estimator::ModelPreset::name);
  }
  if (path == "cluster.gpu") return names_of(estimator::gpus(), &estimator::Gpu::id);
  if (path.ends_with("_link")) return names_of(estimator::links(), &estimator::Link::id);
  const estimator::PlanOption* option = estimator::find_plan_option(path);
  return option == nullptr ? Lines() : option->choices;
}

/// Near the number that it has now: sizes are multiples and divisors of each other.
std::string fitting_number(const std::string& now, Random& random) {
  int64_t number = 0;
  std::from_chars(now.data(), now.data() + now.size(), number);
  if (number <= 0 || number > 1'000'000'000) number = 1;
  const int64_t near[] = {number * 2, std::max<int64_t>(number / 2, 1), number + 1, 1, 2, 8};
  return std::to_string(random.pick(near));
}

/// `now` is what the flag has, "" where it is not given.
std::string fitting_value(const PlanFlag& flag, const std::string& now, Random& random) {
  constexpr const char* kReals[] = {"0", "0.01", "0.1", "0.5", "1", "2.5", "1000"};
  if (flag.type == OptionType::kWhole) return fitting_number(now, random);
  if (flag.type == OptionType::kReal) return random.pick(kReals);
  const Lines words = words_of(flag.path);
  return words.empty() ? random.pick(kValues) : random.pick(words);
}

void add_one_of(const sim::PlanFlagGroup& group, Lines& lines, Random& random) {
  const PlanFlag& flag = random.pick(group.flags);
  lines.push_back(any_name(flag, random));
  if (!flag.is_switch()) lines.push_back(fitting_value(flag, "", random));
}

/// One flag that is given is left out or gets another value, or one of its group is added.
void change_fittingly(Lines& lines, Random& random) {
  std::vector<size_t> places;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (flag_of(lines[i]).flag != nullptr) places.push_back(i);
  }
  if (places.empty()) return;
  const size_t at = random.pick(places);
  const KnownFlag given = flag_of(lines[at]);
  if (random.one_in(3)) return add_one_of(*given.group, lines, random);
  const bool is_switch = given.flag->is_switch();
  const auto place = lines.begin() + static_cast<std::ptrdiff_t>(at);
  const size_t equals = place->find('=');
  const bool has_line = !is_switch && equals == std::string::npos;
  if (has_line && at + 1 == lines.size()) return;
  if (is_switch || random.one_in(3)) {
    lines.erase(place, place + (has_line ? 2 : 1));
  } else if (has_line) {
    place[1] = fitting_value(*given.flag, place[1], random);
  } else {
    const std::string value = fitting_value(*given.flag, place->substr(equals + 1), random);
    *place = place->substr(0, equals + 1) + value;
  }
}

void change(Lines& lines, Random& random) {
  const size_t at = random.below(lines.size() + 1);
  const bool is_end = at == lines.size();
  const auto place = lines.begin() + static_cast<std::ptrdiff_t>(at);
  switch (random.below(5)) {
    case 0:
      if (!is_end) lines.erase(place);
      return;
    case 1:
      if (!is_end) *place = random.pick(kValues);
      return;
    case 2:
      lines.insert(place, any_name(any_flag(random), random));
      return;
    case 3:
      lines.push_back(any_name(any_flag(random), random) + "=" + random.pick(kValues));
      return;
    default:
      lines.insert(lines.end(), {any_name(any_flag(random), random), random.pick(kValues)});
  }
}

}  // namespace
}  // namespace fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                          size_t size,
                                          size_t most_bytes,
                                          unsigned seed) {
  constexpr size_t kMostBytes = 64 * 1024;  // 100,000 flags take 10 s under the sanitizers
  most_bytes = std::min(most_bytes, kMostBytes);
  fuzz::Random random(seed);
  const bool fits = !random.one_in(3);
  if (!fits && random.one_in(3)) return LLVMFuzzerMutate(data, size, most_bytes);
  fuzz::Lines lines = fuzz::lines_of({reinterpret_cast<const char*>(data), size});
  for (uint64_t changes = 1 + random.below(fits ? 2 : 4); changes > 0; --changes) {
    fits ? fuzz::change_fittingly(lines, random) : fuzz::change(lines, random);
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  if (!fuzz::write_input(data, most_bytes, text)) return size;
  return text.size();
}
