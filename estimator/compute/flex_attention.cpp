#include "estimator/compute/flex_attention.h"

#include <algorithm>
#include <vector>

#include "estimator/base/contains.h"
#include "estimator/base/database.h"

namespace onerank_data {
extern const std::string_view flex_attention_json;
}

namespace estimator {
namespace {

struct FlexRow {
  std::vector<std::string> gpus;
  double forward = 1;
  double backward = 1;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, FlexRow& row) {
  visit("gpus", row.gpus, "GPUs that it is used for; the first row for all others");
  visit("forward", row.forward, "rate over that of FlashAttention-2");
  visit("backward", row.backward, "the same");
  visit("source", row.source, "where it was read");
}

const std::vector<FlexRow>& flex_rows() {
  static const auto rows =
      read_database<FlexRow>(onerank_data::flex_attention_json, "flex_attention.json");
  return rows;
}

}  // namespace

bool is_flex_attention(std::string_view operator_name) {
  return operator_name.starts_with("higher_order::flex_attention");
}

std::string flash_attention_like(AttentionPass pass) {
  const std::string forward = "aten::_scaled_dot_product_flash_attention";
  return pass == AttentionPass::kBackward ? forward + "_backward" : forward;
}

TaggedNumber flex_attention_share(const std::string& gpu_id, AttentionPass pass) {
  const auto& rows = flex_rows();
  const auto own = std::find_if(
      rows.begin(), rows.end(), [&](const FlexRow& row) { return contains(row.gpus, gpu_id); });
  const FlexRow& row = own == rows.end() ? rows.front() : *own;
  return {.value = pass == AttentionPass::kForward ? row.forward : row.backward,
          .source = own == rows.end() ? Source::kAssumed : Source::kPublished,
          .note = row.source};
}

}  // namespace estimator
