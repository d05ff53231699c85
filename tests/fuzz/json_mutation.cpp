#include "tests/fuzz/json_mutation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

namespace fuzz {
namespace {

using estimator::Json;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
/// Around the powers of two and ten that limits lie at, and 9e15, the most that the project takes.
constexpr int64_t kWholeNumbers[] = {0,
                                     1,
                                     2,
                                     3,
                                     4,
                                     7,
                                     8,
                                     16,
                                     17,
                                     64,
                                     100,
                                     127,
                                     128,
                                     255,
                                     256,
                                     1000,
                                     4096,
                                     65535,
                                     65536,
                                     999999,
                                     1000000,
                                     1000001,
                                     1000000000,
                                     2147483647,
                                     2147483648,
                                     4294967295,
                                     4294967296,
                                     9000000000000000,
                                     -1,
                                     -2,
                                     -1000,
                                     -2147483648,
                                     9000000000000001,
                                     9007199254740993,
                                     -9000000000000000,
                                     1000000000000000000,
                                     kMost,
                                     kMost - 1,
                                     kLeast};
constexpr double kRealNumbers[] = {0.0,
                                   -0.0,
                                   0.1,
                                   0.5,
                                   0.9999999,
                                   1.0000001,
                                   -1.5,
                                   1e-9,
                                   1e-12,
                                   5e-324,
                                   1e-308,
                                   9.1e15,
                                   1e18,
                                   1e30,
                                   1e100,
                                   1e308,
                                   -1e308,
                                   -1e-9};
/// Words that mean something somewhere, and text that may not go through anything unchanged.
constexpr std::string_view kTexts[] = {"",
                                       "auto",
                                       "null",
                                       "true",
                                       "1e999",
                                       "0x10",
                                       "{}",
                                       "%s%n",
                                       "{0}",
                                       "a\nb",
                                       "../../x",
                                       "\x1b[31mred\x1b[0m",
                                       "\xc2\x9b"
                                       "31m",
                                       "\xff\xfe",
                                       "\xf0\x9f\x98\x80",
                                       "h100-sxm",
                                       "v100",
                                       "llama3-8b",
                                       "deepseek-v3",
                                       "gpt2",
                                       "bf16",
                                       "fp32",
                                       "fp8",
                                       "flash",
                                       "unfused",
                                       "selective",
                                       "full",
                                       "all_reduce",
                                       "send",
                                       "recv",
                                       "tensor",
                                       "data",
                                       "pipeline",
                                       "backward",
                                       "recompute",
                                       "aten::mm",
                                       "aten::bmm",
                                       "iteration_1.forward_backward",
                                       "optimizer_step",
                                       "virtual",
                                       "cpu",
                                       "expandable_segments:True",
                                       "max_split_size_mb:1"};
constexpr size_t kLongText = 100'000;
constexpr size_t kLongList = 3'000;
constexpr int kDeepest = 12;

Json text_value(Random& random) { return std::string(random.pick(kTexts)); }
Json whole_value(Random& random) { return random.pick(kWholeNumbers); }
Json real_value(Random& random) { return random.pick(kRealNumbers); }

Json any_value(Random& random) {
  switch (random.below(10)) {
    case 0:
      return nullptr;
    case 1:
      return random.one_in(2);
    case 2:
      return text_value(random);
    case 3:
      return real_value(random);
    case 4:
      return Json::array();
    case 5:
      return Json::object();
    case 6:
      return std::string(random.one_in(20) ? kLongText : 1 + random.below(300), 'x');
    case 7:
      return std::numeric_limits<uint64_t>::max() - random.below(3);
    default:
      return whole_value(random);
  }
}

Json::iterator child_at(Json& parent, size_t index) {
  return std::next(parent.begin(), static_cast<std::ptrdiff_t>(index));
}
Json& any_child(Json& parent, Random& random) {
  return *child_at(parent, random.below(parent.size()));
}
std::string any_key(Json& object, Random& random) {
  return child_at(object, random.below(object.size())).key();
}

Json changed_real(double value, Random& random) {
  constexpr double kScales[] = {-1, 0.5, 1e3, 1e12, 1e-12};
  return random.one_in(4) ? real_value(random) : Json(value * random.pick(kScales));
}

Json changed_whole(int64_t value, Random& random) {
  const auto wide = static_cast<double>(value);
  switch (random.below(8)) {
    case 0:
      return value == kLeast ? value : -value;
    case 1:
      return value == kMost ? value : value + 1;
    case 2:
      return value == kLeast ? value : value - 1;
    case 3:
      return value / 2;
    case 4:
      return std::abs(wide) < 1e18 ? value * 2 : value;
    case 5:
      return wide * 1e3;
    case 6:
      return wide + 0.5;
    default:
      return whole_value(random);
  }
}

Json changed_scalar(const Json& scalar, Random& random) {
  if (scalar.is_boolean()) return !scalar.get<bool>();
  if (scalar.is_string()) return text_value(random);
  if (scalar.is_number_float()) return changed_real(scalar.get<double>(), random);
  if (scalar.is_number()) return changed_whole(scalar.get<int64_t>(), random);
  return any_value(random);
}

void change_array(Json& array, Random& random) {
  if (array.empty() || random.one_in(5)) {
    array.push_back(any_value(random));
    return;
  }
  switch (random.below(4)) {
    case 0:
      array.clear();
      return;
    case 1:
      array.erase(random.below(array.size()));
      return;
    case 2:
      std::swap(any_child(array, random), any_child(array, random));
      return;
    default: {
      const Json element = any_child(array, random);
      for (size_t n = random.one_in(30) ? kLongList : 3; n > 0; --n) array.push_back(element);
    }
  }
}

void change_object(Json& object, Random& random) {
  if (object.empty() || random.one_in(6)) {
    object[std::string(random.pick(kTexts))] = any_value(random);
    return;
  }
  switch (random.below(4)) {
    case 0:
    case 1:
      object.erase(any_key(object, random));
      return;
    case 2:
      std::swap(any_child(object, random), any_child(object, random));
      return;
    default: {
      Json copy = object;
      any_child(object, random) = std::move(copy);
    }
  }
}

Json& any_place(Json& tree, Random& random) {
  Json* place = &tree;
  for (int depth = 0; depth < kDeepest && place->is_structured() && !place->empty(); ++depth) {
    if (depth > 0 && random.one_in(5)) break;
    place = &any_child(*place, random);
  }
  return *place;
}

std::string mutate_lines(const std::string& text, Random& random) {
  const size_t from = text.rfind('\n', random.below(text.size() + 1));
  // The first line is the header of what follows: it is met as often as all the others.
  const size_t begin = from == std::string::npos || random.one_in(2) ? 0 : from + 1;
  const size_t end = std::min(text.find('\n', begin), text.size());
  Json line = Json::parse(text.substr(begin, end - begin), nullptr, false);
  if (line.is_discarded()) return text;
  mutate_tree(line, random);
  return text.substr(0, begin) + write_json(line) + text.substr(end);
}

}  // namespace

std::string write_json(const Json& tree) {
  return tree.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void mutate_tree(Json& tree, Random& random) {
  Json& place = any_place(tree, random);
  if (random.one_in(5)) {
    place = any_value(random);
  } else if (place.is_array()) {
    change_array(place, random);
  } else if (place.is_object()) {
    change_object(place, random);
  } else {
    place = changed_scalar(place, random);
  }
}

std::string mutate_json(std::string text, Random& random) {
  Json tree = Json::parse(text, nullptr, false);
  const uint64_t changes = 1 + random.below(3);
  for (uint64_t i = 0; i < changes; ++i) {
    if (tree.is_discarded()) {
      text = mutate_lines(text, random);
    } else {
      mutate_tree(tree, random);
    }
  }
  return tree.is_discarded() ? text : write_json(tree);
}

bool write_input(uint8_t* data, size_t most_bytes, const std::string& text) {
  if (text.size() > most_bytes) return false;
  std::memcpy(data, text.data(), text.size());
  return true;
}

size_t mutate_json_input(uint8_t* data, size_t size, size_t most_bytes, unsigned seed) {
  Random random(seed);
  const std::string text =
      mutate_json(std::string(reinterpret_cast<const char*>(data), size), random);
  if (!write_input(data, most_bytes, text)) return size;
  return random.one_in(6) ? LLVMFuzzerMutate(data, text.size(), most_bytes) : text.size();
}

}  // namespace fuzz
