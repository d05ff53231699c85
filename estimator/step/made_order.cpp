#include "estimator/step/made_order.h"

namespace estimator {

StepOrder in_sequence(const RankProfile& profile) {
  StepOrder order{.modules = {""}, .events = {}};
  const auto add = [&](OrderKind kind, std::size_t item, int64_t chunk, Direction direction) {
    order.events.add(
        {.kind = kind, .item = static_cast<int64_t>(item), .chunk = chunk, .direction = direction});
  };
  const auto add_all = [&](bool per_micro_batch, OrderKind kind, const auto& records) {
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (is_per_micro_batch(records[i].direction) != per_micro_batch) continue;
      add(kind, i, records[i].chunk, records[i].direction);
    }
  };
  for (const bool per_micro_batch : {true, false}) {
    add_all(per_micro_batch, OrderKind::kOperator, profile.operators);
    add_all(per_micro_batch, OrderKind::kCollective, profile.collectives);
  }
  return order;
}

}  // namespace estimator
