#include "sim/cli/import/toml_entries.h"

#include <fmt/format.h>

// Its parser asserts that a key begins where it then says that none does ("[" and the line's end).
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>

#include <sstream>

#include "estimator/base/errors.h"
#include "estimator/base/text.h"
#include "sim/cli/import/key_table.h"

namespace sim {
namespace {

std::string value_text(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  std::ostringstream stream;
  if (const auto* whole = node.as_integer()) {
    stream << whole->get();
  } else if (const auto* real = node.as_floating_point()) {
    return fmt::format("{}", real->get());
  } else if (const auto* is_true = node.as_boolean()) {
    return is_true->get() ? "true" : "false";
  }
  return stream.str();
}

void add_entries(const toml::table& table,
                 const std::string& prefix,
                 const std::string& origin,
                 std::vector<SourceEntry>& entries) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const toml::table* inner = node.as_table()) {
      add_entries(*inner, name + ".", origin, entries);
      continue;
    }
    SourceEntry entry = {.key = normal_key(name),
                         .values = {},
                         .place = fmt::format("{}:{}", origin, key.source().begin.line),
                         .as_written = name};
    if (const toml::array* items = node.as_array()) {
      for (const toml::node& item : *items) entry.values.push_back(value_text(item));
    } else {
      entry.values.push_back(value_text(node));
    }
    entries.push_back(std::move(entry));
  }
}

}  // namespace

std::vector<SourceEntry> toml_entries(const std::string& text, const std::string& origin) {
  try {
    std::vector<SourceEntry> entries;
    add_entries(toml::parse(text, origin), "", origin, entries);
    return entries;
  } catch (const toml::parse_error& error) {
    const toml::source_position& at = error.source().begin;
    throw estimator::UserError(
        {.what = fmt::format("{} is not valid TOML: {}", origin, error.description()),
         .where = fmt::format("line {}, column {}", at.line, at.column),
         .help = "see TorchTitan's train_configs for complete examples"});
  }
}

}  // namespace sim
