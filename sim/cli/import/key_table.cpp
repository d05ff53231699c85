#include "sim/cli/import/key_table.h"

#include <algorithm>
#include <stdexcept>

#include "estimator/base/database.h"

namespace onerank_data {
extern const std::string_view import_techniques_json;
}

namespace sim {

const std::vector<Technique>& techniques() {
  static const auto rows =
      estimator::read_database<Technique>(onerank_data::import_techniques_json, "techniques.json");
  return rows;
}

const Technique& technique_named(std::string_view name) {
  for (const Technique& technique : techniques()) {
    if (technique.name == name) return technique;
  }
  throw std::logic_error("no such technique: " + std::string(name));
}

std::vector<KeyRow> read_key_rows(std::string_view text, const std::string& name) {
  auto rows = estimator::read_database<KeyRow>(text, name);
  for (KeyRow& row : rows) {
    for (std::string& key : row.keys) key = normal_key(key);
    for (KeyCondition& condition : row.when) condition.key = normal_key(condition.key);
  }
  return rows;
}

std::string normal_key(std::string_view key) {
  key.remove_prefix(std::min(key.find_first_not_of('-'), key.size()));
  std::string normal(key);
  std::replace(normal.begin(), normal.end(), '_', '-');
  return normal;
}

}  // namespace sim
