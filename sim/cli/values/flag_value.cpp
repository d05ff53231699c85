#include "sim/cli/values/flag_value.h"

#include <fmt/format.h>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/text.h"
#include "sim/cli/values/byte_sizes.h"
#include "sim/cli/values/layer_pattern.h"
#include "sim/cli/values/strict_number.h"
#include "sim/cli/values/token_words.h"

namespace sim {
namespace {

using estimator::Json;
using estimator::OptionType;
using estimator::split;
using estimator::UserError;

/// A switch writes its constant; `--sequence-parallel=false` turns a true one off.
Json switch_value(const PlanFlag& flag, const std::string& text) {
  Json constant = Json::parse(flag.said.constant);
  if (text == "true") return constant;
  if (text == "false" && constant.is_boolean()) return !constant.get<bool>();
  throw UserError({.what = "a flag that takes no value was given one",
                   .where = fmt::format("{} = \"{}\"", flag.short_name(), text),
                   .help = fmt::format("write {} alone", flag.short_name())});
}

}  // namespace

std::string translated(const std::string& word, const std::string& synonyms) {
  for (const std::string& pair : split(synonyms, ',')) {
    const std::size_t equals = pair.find('=');
    if (equals != std::string::npos && pair.substr(0, equals) == word)
      return pair.substr(equals + 1);
  }
  return word;
}

Json option_value(OptionType type, const std::string& text, const std::string& source) {
  switch (type) {
    case OptionType::kWhole:
      return text == "auto" ? Json(text) : Json(parse_whole_number(text, source));
    case OptionType::kReal:
      return text == "auto" ? Json(text) : Json(parse_real_number(text, source));
    case OptionType::kWholeList:
      return Json(parse_layer_pattern(text, source));
    case OptionType::kTextList:
      return split(text, ',');
    case OptionType::kSwitch:
      return text == "true" || text == "false" ? Json(text == "true") : Json(text);
    case OptionType::kText:
    case OptionType::kChoice:
      return text;
  }
  throw std::logic_error("a key of no type");
}

Json flag_value(const PlanFlag& flag, const std::string& typed) {
  if (flag.is_switch()) return switch_value(flag, typed);
  const std::string text = translated(typed, flag.said.synonyms);
  if (is_size(flag.path)) return text;  // read_byte_sizes() reads it
  if (is_token_rule(flag.path, text)) return text;
  const bool is_empty_list = flag.type == OptionType::kWholeList && text.empty() && typed != text;
  return is_empty_list ? Json::array() : option_value(flag.type, text, flag.short_name());
}

}  // namespace sim
