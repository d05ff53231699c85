#include "estimator/plan/allocator_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "estimator/base/number_text.h"

namespace estimator {
namespace {

bool is_whole_from(std::string_view text, double smallest) {
  const auto number = parse_number<double>(text);
  return number && *number >= smallest && *number == static_cast<double>(int64_t(*number));
}

bool is_boolean(std::string_view text) { return text == "True" || text == "False"; }
bool is_count(std::string_view text) { return is_whole_from(text, 0); }
bool is_splittable_size(std::string_view text) { return is_whole_from(text, 20); }
bool is_segment_size(std::string_view text) { return is_whole_from(text, 11); }
bool is_backend(std::string_view text) { return text == "native" || text == "cudaMallocAsync"; }

bool is_fraction(std::string_view text) {
  const auto number = parse_number<double>(text);
  return number && *number >= 0 && *number <= 1;
}
bool is_threshold(std::string_view text) {
  const auto number = parse_number<double>(text);
  return number && *number > 0 && *number < 1;
}

bool is_power_of_two(std::string_view text) {
  if (!is_whole_from(text, 0)) return false;
  const auto number = static_cast<int64_t>(*parse_number<double>(text));
  return (number & (number - 1)) == 0;
}

/// "8", or "[256:1,512:2,>:4]".
bool are_divisions(std::string_view text) {
  if (!text.starts_with('[')) return is_power_of_two(text);
  if (!text.ends_with(']')) return false;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    const std::size_t colon = pair.find(':');
    if (colon == pair.npos || !is_power_of_two(pair.substr(colon + 1))) return false;
    if (pair.substr(0, colon) != ">" && !is_power_of_two(pair.substr(0, colon))) return false;
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
  }
  return true;
}

struct Key {
  const char* name;
  bool (*takes)(std::string_view value);
  const char* values;
};

/// c10/core/AllocatorConfig.cpp and c10/cuda/CUDAAllocatorConfig.cpp of torch 2.11.
constexpr Key kKeys[] = {
    {"expandable_segments", is_boolean, "True or False"},
    {"max_split_size_mb", is_splittable_size, "a whole number from 20 on"},
    {"max_non_split_rounding_mb", is_splittable_size, "a whole number from 20 on"},
    {"large_segment_size_mb", is_segment_size, "a whole number from 11 on"},
    {"roundup_power2_divisions", are_divisions, "a power of two, or [256:1,512:2,>:4]"},
    {"garbage_collection_threshold", is_threshold, "a number between 0 and 1"},
    {"per_process_memory_fraction", is_fraction, "a number from 0 to 1"},
    {"backend", is_backend, "native or cudaMallocAsync"},
    {"release_lock_on_cudamalloc", is_boolean, "True or False"},
    {"graph_capture_record_stream_reuse", is_boolean, "True or False"},
    {"pinned_use_cuda_host_register", is_boolean, "True or False"},
    {"pinned_num_register_threads", is_count, "a whole number"},
    {"pinned_reserve_segment_size_mb", is_count, "a whole number"},
    {"pinned_use_background_threads", is_boolean, "True or False"},
};

/// Takes the next setting off `text`: up to a comma that is in no brackets.
std::string_view next_setting(std::string_view& text) {
  std::size_t end = 0;
  for (int open = 0; end < text.size() && (open > 0 || text[end] != ','); ++end) {
    if (text[end] == '[') ++open;
    if (text[end] == ']') --open;
  }
  const std::string_view setting = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return setting;
}

}  // namespace

std::optional<Problem> find_allocator_problem(std::string_view settings, const std::string& where) {
  std::string packed(settings);  // PyTorch reads over blanks
  packed.erase(std::remove(packed.begin(), packed.end(), ' '), packed.end());
  for (std::string_view rest = packed; !rest.empty();) {
    const std::string_view setting = next_setting(rest);
    const std::size_t colon = std::min(setting.find(':'), setting.size());
    const std::string name(setting.substr(0, colon));
    const std::string place = fmt::format("{} = {}", where, settings);
    std::vector<std::string> names;
    for (const Key& key : kKeys) names.emplace_back(key.name);
    const auto key = std::find(names.begin(), names.end(), name);
    if (key == names.end()) {
      return Problem{.what = fmt::format("PyTorch's allocator has no setting \"{}\"", name),
                     .where = place,
                     .help = suggestion(name, names)};
    }
    const Key& known = kKeys[key - names.begin()];
    const std::string_view value = setting.substr(std::min(colon + 1, setting.size()));
    if (known.takes(value)) continue;
    return Problem{.what = fmt::format("PyTorch's allocator does not take {}:{}", name, value),
                   .where = place,
                   .help = fmt::format("write {}:VALUE with {}", name, known.values)};
  }
  return std::nullopt;
}

}  // namespace estimator
