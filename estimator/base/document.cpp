#include "estimator/base/document.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"

namespace estimator {
namespace {

bool is_list_of_numbers(const Json& json) {
  return json.is_array() &&
         std::all_of(json.begin(), json.end(), [](const Json& item) { return item.is_number(); });
}

void append(const Json& json, std::size_t depth, std::string& text) {
  const bool has_parts = json.is_structured() && !json.empty() && !is_list_of_numbers(json);
  if (!has_parts) {
    text += json.dump();
    return;
  }
  text += json.is_object() ? '{' : '[';
  bool is_first = true;
  for (const auto& [key, value] : json.items()) {
    text += is_first ? "\n" : ",\n";
    text.append(depth + 1, ' ');
    if (json.is_object()) text += Json(key).dump() + ": ";
    append(value, depth + 1, text);
    is_first = false;
  }
  text += '\n';
  text.append(depth, ' ');
  text += json.is_object() ? '}' : ']';
}

}  // namespace

std::string document_text(const Json& json) {
  std::string text;
  append(json, 0, text);
  return text + "\n";
}

std::string document_text(const void* value, const FieldType& type) {
  return document_text(to_json(value, type, ""));
}

DocumentHead::DocumentHead(int64_t version, std::string_view its_kind)
    : schema_version(version), kind(its_kind) {}

void check_head(const Json& json,
                const DocumentHead& expected,
                const std::string& origin,
                const std::string& help) {
  const auto refuse = [&](std::string where) {
    std::string name = expected.kind;
    std::replace(name.begin(), name.end(), '_', ' ');
    throw UserError({.what = fmt::format("{} is not a {} of this version", origin, name),
                     .where = std::move(where),
                     .help = help});
  };
  if (!json.is_object() || json.value("kind", Json()) != expected.kind) {
    refuse(fmt::format("kind is not \"{}\"", expected.kind));
  }
  const Json version = json.value("schema_version", Json());
  if (version != expected.schema_version) {
    refuse(fmt::format(
        "schema_version = {}, this tool reads {}", shown(version), expected.schema_version));
  }
}

void read_written(const WrittenDocument& written,
                  const DocumentHead& expected,
                  void* value,
                  const FieldType& type) {
  const Json json = parse_json(written.text, written.origin);
  check_head(json, expected, written.origin, written.help);
  FieldReader reader(written.origin, RequiredKeys::kAllButOptional);
  reader.read(json, value, type, "", {});
  reader.throw_if_any();
}

}  // namespace estimator
