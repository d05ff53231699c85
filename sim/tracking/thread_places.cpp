#include "sim/tracking/thread_places.h"

#include <algorithm>
#include <iterator>

namespace sim {

void ForwardNodes::module_changed(uint64_t next_node, ModuleId module) {
  if (!changes_.empty() && changes_.back().first_node == next_node) changes_.pop_back();
  changes_.push_back({next_node, module});
}

std::optional<ModuleId> ForwardNodes::module_of(uint64_t node) const {
  const auto later = std::upper_bound(
      changes_.begin(), changes_.end(), node, [](uint64_t value, const Change& change) {
        return value < change.first_node;
      });
  if (later == changes_.begin()) return std::nullopt;
  return std::prev(later)->module;
}

OperatorFrame& OperatorStack::push() {
  if (depth_ == frames_.size()) frames_.emplace_back();
  OperatorFrame& frame = frames_[depth_++];
  frame.is_part_of_kernel = false;
  frame.called_a_counted = false;
  return frame;
}

const OperatorTraits* OperatorStack::kernel() const {
  // What a kernel calls has the kernel's traits, so the top tells.
  if (empty() || !frames_[depth_ - 1].call.op->is_kernel) return nullptr;
  return frames_[depth_ - 1].call.op;
}

const OperatorTraits* OperatorStack::at_work() const {
  for (size_t i = depth_; i > 0; --i) {
    if (!frames_[i - 1].call.op->moves_no_data) return frames_[i - 1].call.op;
  }
  return empty() ? nullptr : frames_[depth_ - 1].call.op;
}

}  // namespace sim
