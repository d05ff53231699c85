#include "sim/virtual_gpu/spec.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <map>
#include <stdexcept>

namespace virtual_gpu {
namespace {

constexpr int kMostNvlinks = 36;      // NVML_NVLINK_MAX_LINKS
constexpr size_t kLongestName = 255;  // cudaDeviceProp::name holds 256 characters
constexpr const char* kExample =
    "name=NVIDIA H100 80GB HBM3;capability=9.0;multiprocessors=132;memory_bytes=85029158912;"
    "l2_bytes=52428800;outside_bytes=0;devices=1;nvlinks=18;board_watts=700;events=immediate";

constexpr const char* kEvents[] = {"immediate", "ordered"};  // by VirtualGpuSpec::ordered_events

[[noreturn]] void fail(const std::string& reason) {
  throw std::invalid_argument(std::string(kEnvironmentVariable) + ": " + reason +
                              "\n  expected: " + kExample);
}

std::string quoted(std::string_view text) {
  return std::string(1, '\'').append(text).append(1, '\'');
}

template <typename Integer>
Integer parse_integer(std::string_view key,
                      std::string_view text,
                      Integer low = 1,
                      Integer high = std::numeric_limits<Integer>::max()) {
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    fail(std::string(key) + "=" + std::string(text) + " is not a whole number from " +
         std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

/// The fields of "key=value;key=value", each key once.
std::map<std::string_view, std::string_view> split_fields(std::string_view text) {
  std::map<std::string_view, std::string_view> fields;
  while (!text.empty()) {
    const std::string_view field = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), field.size() + 1));
    const size_t equals = field.find('=');
    if (equals == std::string_view::npos) fail(quoted(field).append(" has no '='"));
    if (!fields.emplace(field.substr(0, equals), field.substr(equals + 1)).second) {
      fail("the key " + quoted(field.substr(0, equals)) + " stands twice");
    }
  }
  return fields;
}

std::string_view take(std::map<std::string_view, std::string_view>& fields, std::string_view key) {
  const auto found = fields.find(key);
  if (found == fields.end()) fail("the key " + quoted(key) + " is missing");
  const std::string_view value = found->second;
  fields.erase(found);
  return value;
}

}  // namespace

std::string to_environment(const VirtualGpuSpec& spec) {
  const std::string text =
      "name=" + spec.name + ";capability=" + std::to_string(spec.capability_major) + "." +
      std::to_string(spec.capability_minor) +
      ";multiprocessors=" + std::to_string(spec.multiprocessors) +
      ";memory_bytes=" + std::to_string(spec.memory_bytes) +
      ";l2_bytes=" + std::to_string(spec.l2_bytes) +
      ";outside_bytes=" + std::to_string(spec.outside_bytes) +
      ";devices=" + std::to_string(spec.device_count) + ";nvlinks=" + std::to_string(spec.nvlinks) +
      ";board_watts=" + std::to_string(spec.board_watts) +
      ";events=" + kEvents[spec.ordered_events];
  if (parse(text) != spec) fail("the name " + quoted(spec.name) + " holds a ';'");
  return text;
}

VirtualGpuSpec parse(std::string_view text) {
  auto fields = split_fields(text);
  VirtualGpuSpec spec;

  spec.name = take(fields, "name");
  if (spec.name.empty() || spec.name.size() > kLongestName) {
    fail("name= must have 1 to 255 characters");
  }
  const std::string_view capability = take(fields, "capability");
  const size_t dot = capability.find('.');
  if (dot == std::string_view::npos) {
    fail("capability=" + std::string(capability) + " is not of the form 9.0");
  }
  spec.capability_major = parse_integer<int>("capability", capability.substr(0, dot), 1, 99);
  spec.capability_minor = parse_integer<int>("capability", capability.substr(dot + 1), 0, 9);
  spec.multiprocessors = parse_integer<int>("multiprocessors", take(fields, "multiprocessors"));
  spec.memory_bytes = parse_integer<int64_t>("memory_bytes", take(fields, "memory_bytes"));
  spec.l2_bytes = parse_integer<int>("l2_bytes", take(fields, "l2_bytes"));
  spec.outside_bytes =
      parse_integer<int64_t>("outside_bytes", take(fields, "outside_bytes"), 0, spec.memory_bytes);
  spec.device_count = parse_integer<int>("devices", take(fields, "devices"), 1, 64);
  spec.nvlinks = parse_integer<int>("nvlinks", take(fields, "nvlinks"), 0, kMostNvlinks);
  spec.board_watts = parse_integer<int>("board_watts", take(fields, "board_watts"), 0);

  const std::string_view events = take(fields, "events");
  const auto* const known = std::find(std::begin(kEvents), std::end(kEvents), events);
  if (known == std::end(kEvents)) fail(quoted(events).append(" is no mode of events"));
  spec.ordered_events = known != std::begin(kEvents);

  if (!fields.empty()) fail("the key " + quoted(fields.begin()->first) + " is not known");
  return spec;
}

}  // namespace virtual_gpu
