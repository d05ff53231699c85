#include "sim/virtual_gpu/kernels/ptx.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace virtual_gpu {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

/// Takes the next word off `text`: up to a blank; "" at its end.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(kBlanks)));
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return word;
}

/// Bytes of a fundamental type of PTX, such as ".u64"; 0 for another word.
uint32_t ptx_type_bytes(std::string_view word) {
  constexpr std::pair<std::string_view, uint32_t> kSizes[] = {
      {"8", 1}, {"16", 2}, {"32", 4}, {"64", 8}, {"128", 16}};
  constexpr std::string_view kLetters = "usbf";
  if (word.size() < 3 || word[0] != '.' || kLetters.find(word[1]) == kLetters.npos) return 0;
  for (const auto& [bits, bytes] : kSizes) {
    if (word.substr(2) == bits) return bytes;
  }
  return 0;
}

/// Of `.param .align 8 .b8 name[24]`; empty if the declaration has another form.
std::optional<uint32_t> declared_bytes(std::string_view declaration) {
  uint32_t bytes = 0;
  std::string_view last;
  for (auto word = take_word(declaration); !word.empty(); word = take_word(declaration)) {
    if (const uint32_t of_type = ptx_type_bytes(word)) bytes = of_type;
    last = word;
  }
  if (bytes == 0) return std::nullopt;
  const size_t bracket = last.find('[');
  if (bracket == last.npos) return bytes;
  uint32_t count = 0;
  const std::string_view number = last.substr(bracket + 1);
  const auto read = std::from_chars(number.data(), number.data() + number.size(), count);
  if (read.ec != std::errc() || count > UINT16_MAX) return std::nullopt;
  return bytes * count;
}

std::optional<ParameterBytes> parameters_in(std::string_view list) {
  ParameterBytes parameters;
  while (list.find_first_not_of(kBlanks) != list.npos) {
    const std::string_view declaration = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), declaration.size() + 1));
    const auto bytes = declared_bytes(declaration);
    if (!bytes) return std::nullopt;
    parameters.push_back(*bytes);
  }
  return parameters;
}

}  // namespace

KernelCodes kernels_in_ptx(std::string_view text) {
  constexpr std::string_view kEntry = ".entry";
  KernelCodes found;
  for (size_t at = text.find(kEntry); at != text.npos; at = text.find(kEntry, at)) {
    at += kEntry.size();
    // A kernel without parameters may have no list: its code follows.
    const size_t end_of_name = text.find_first_of("({", at);
    if (end_of_name == text.npos) break;
    std::string_view head = text.substr(at, end_of_name - at);
    const std::string_view name = take_word(head);
    std::string_view list = text[end_of_name] == '(' ? text.substr(end_of_name + 1) : "";
    list = list.substr(0, list.find(')'));
    found[std::string(name)].parameter_bytes = parameters_in(list);
  }
  return found;
}

}  // namespace virtual_gpu
