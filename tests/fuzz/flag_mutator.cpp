// For targets whose inputs are flags, one argument in each line.
#include "sim/cli/input/plan_flag_table.h"
#include "tests/fuzz/arguments.h"
#include "tests/fuzz/json_mutation.h"

namespace fuzz {
namespace {

constexpr const char* kValues[] = {
    "0",    "1",    "2",       "3",    "4",    "8",     "16",      "64",   "100",  "128",
    "1000", "4096", "1000000", "1e9",  "1e18", "0.5",   "1e308",   "-1",   "nan",  "2147483648",
    "",     "auto", "true",    "fp16", "bf16", "flash", "unfused", "full", "gpt2", "b200",
    "v100", "1,2",  "adam",    "sgd",  "rope", "none",  "plain",   "1f1b", "gpipe"};

std::string any_flag(Random& random) {
  const std::string names =
      random.pick(random.pick(sim::plan_flag_groups()).flags).names;  // "--long,--short"
  const size_t comma = names.find(',');
  if (comma == std::string::npos) return names;
  return random.one_in(2) ? names.substr(0, comma) : names.substr(comma + 1);
}

void change(std::vector<std::string>& lines, Random& random) {
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
      lines.insert(place, any_flag(random));
      return;
    case 3:
      lines.push_back(any_flag(random) + "=" + random.pick(kValues));
      return;
    default:
      lines.insert(lines.end(), {any_flag(random), random.pick(kValues)});
  }
}

}  // namespace
}  // namespace fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                          size_t size,
                                          size_t most_bytes,
                                          unsigned seed) {
  fuzz::Random random(seed);
  if (random.one_in(3)) return LLVMFuzzerMutate(data, size, most_bytes);
  std::vector<std::string> lines = fuzz::lines_of({reinterpret_cast<const char*>(data), size});
  for (uint64_t changes = 1 + random.below(4); changes > 0; --changes) fuzz::change(lines, random);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  if (!fuzz::write_input(data, most_bytes, text)) return size;
  return text.size();
}
