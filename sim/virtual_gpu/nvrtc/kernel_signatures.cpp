#include "sim/virtual_gpu/nvrtc/kernel_signatures.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <vector>

namespace virtual_gpu {
namespace {

constexpr std::string_view kKernel = "__global__";
constexpr std::string_view kNothing[] = {"const", "volatile", "__restrict__", "__grid_constant__"};
constexpr int kPointerBits = 64;

struct NumberType {
  std::string_view name;
  int bits;
};
constexpr NumberType kNumbers[] = {
    {"bool", 8},          {"char", 8},           {"signed char", 8}, {"unsigned char", 8},
    {"int8_t", 8},        {"uint8_t", 8},        {"short", 16},      {"unsigned short", 16},
    {"int16_t", 16},      {"uint16_t", 16},      {"int", 32},        {"unsigned", 32},
    {"unsigned int", 32}, {"int32_t", 32},       {"uint32_t", 32},   {"float", 32},
    {"long", 64},         {"unsigned long", 64}, {"long long", 64},  {"unsigned long long", 64},
    {"int64_t", 64},      {"uint64_t", 64},      {"size_t", 64},     {"ptrdiff_t", 64},
    {"double", 64},
};

bool is_of_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

/// Takes the next word or the next other character off `text`; "" at its end.
std::string_view take_token(std::string_view& text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t\r\n")));
  const auto end = std::find_if_not(text.begin(), text.end(), is_of_word);
  const auto letters = static_cast<size_t>(end - text.begin());
  const std::string_view token = text.substr(0, std::max<size_t>(letters, 1));
  text.remove_prefix(token.size());
  return token;
}

/// Takes what stands up to the bracket that closes one that was opened before.
std::string_view take_list(std::string_view& text) {
  size_t end = 0;
  for (int open = 1; end < text.size() && open > 0; ++end) {
    open += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
  }
  const std::string_view list = text.substr(0, end == 0 ? 0 : end - 1);
  text.remove_prefix(end);
  return list;
}

/// Of "const size_t rows"; empty for a type of another kind.
std::optional<int> bits_of(std::string_view declaration) {
  if (declaration.find('*') != declaration.npos) return kPointerBits;
  std::vector<std::string_view> words;
  for (auto word = take_token(declaration); !word.empty(); word = take_token(declaration)) {
    if (std::find(std::begin(kNothing), std::end(kNothing), word) == std::end(kNothing)) {
      words.push_back(word);
    }
  }
  std::string type;
  for (size_t i = 0; i + 1 < words.size(); ++i) type += (i > 0 ? " " : "") + std::string(words[i]);
  const auto* const number =
      std::find_if(std::begin(kNumbers), std::end(kNumbers), [&](const NumberType& known) {
        return known.name == type;
      });
  return number == std::end(kNumbers) ? std::nullopt : std::optional(number->bits);
}

std::optional<std::string> ptx_parameters(std::string_view list) {
  std::string parameters;
  if (list.find_first_not_of(" \t\r\n") == list.npos) return parameters;
  for (bool is_last = false; !is_last;) {
    const std::string_view declaration = list.substr(0, list.find(','));
    is_last = declaration.size() == list.size();
    list.remove_prefix(std::min(list.size(), declaration.size() + 1));
    const auto bits = bits_of(declaration);
    if (!bits) return std::nullopt;
    parameters += (parameters.empty() ? "" : ", ") + (".param .b" + std::to_string(*bits)) + " p";
  }
  return parameters;
}

/// Of the function that `text` declares after `__global__`; "" where its parameters are not known.
std::string entry_of(std::string_view text) {
  std::string_view name;
  for (auto token = take_token(text); !token.empty() && token != "{" && token != ";";
       token = take_token(text)) {
    if (token != "(") {
      name = token;
      continue;
    }
    const std::string_view list = take_list(text);
    if (name.starts_with("__")) continue;  // __launch_bounds__(256)
    const auto parameters = ptx_parameters(list);
    return parameters ? ".visible .entry " + std::string(name) + "(" + *parameters + ") { ret; }\n"
                      : "";
  }
  return "";
}

}  // namespace

std::string ptx_of_kernels(std::string_view source) {
  std::string ptx;
  for (size_t at = source.find(kKernel); at != source.npos; at = source.find(kKernel, at)) {
    at += kKernel.size();
    ptx += entry_of(source.substr(at));
  }
  return ptx;
}

}  // namespace virtual_gpu
