// The tables that are compiled into the program (models, GPUs, links): read, and looked up by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimator/files.h"

namespace estimator {

/// The rows of a table, strictly read; `name` is its file's. Throws UserError when it is damaged.
template <class Row>
std::vector<Row> read_database(std::string_view text, const std::string& name) {
  FieldReader reader(name);
  std::vector<Row> rows;
  reader.read(parse_json(text, name), rows, "");
  reader.throw_if_any();
  return rows;
}

/// Whether two names that people type are the same: case does not count.
bool same_name(std::string_view a, std::string_view b);

/// Whether `wanted` is `name` or one of its `aliases`.
bool is_called(std::string_view wanted,
               std::string_view name,
               const std::vector<std::string>& aliases);

}  // namespace estimator
