#include "estimator/compute/attention_extras.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "estimator/base/contains.h"
#include "estimator/base/database.h"

namespace onerank_data {
extern const std::string_view attention_extras_json;
}

namespace estimator {
namespace {

struct ExtrasRow {
  std::vector<std::string> operators;
  double mask = 1;
  double dropout = 1;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, ExtrasRow& row) {
  visit("operators", row.operators, "of PyTorch");
  visit("mask", row.mask, "times as long with a tensor that is added to the scores");
  visit("dropout", row.dropout, "times as long with dropout");
  visit("source", row.source, "where it comes from");
}

const std::vector<ExtrasRow>& extras_rows() {
  static const auto rows =
      read_database<ExtrasRow>(onerank_data::attention_extras_json, "attention_extras.json");
  return rows;
}

}  // namespace

double attention_slowdown(const std::string& operator_name, const AttentionExtras& extras) {
  const auto& rows = extras_rows();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const ExtrasRow& candidate) {
    return contains(candidate.operators, operator_name);
  });
  if (row == rows.end()) return 1;
  return (extras.mask ? row->mask : 1) * (extras.dropout ? row->dropout : 1);
}

}  // namespace estimator
