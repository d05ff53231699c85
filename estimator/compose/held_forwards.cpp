#include "estimator/compose/held_forwards.h"

#include <algorithm>

namespace estimator {
namespace {

class HeldForwards {
 public:
  explicit HeldForwards(const HeldBytes& bytes)
      : bytes_(bytes), in_flight_(bytes.of_forward.size()), has_ended_(bytes.of_forward.size()) {}

  void forward(std::size_t chunk) {
    if (has_ended_[chunk]) held_ -= bytes_.of_ended[chunk];
    has_ended_[chunk] = false;
    held_ += bytes_.of_forward[chunk];
    ++in_flight_[chunk];
  }
  void backward(std::size_t chunk) {
    held_ -= bytes_.of_forward[chunk];
    has_ended_[chunk] = --in_flight_[chunk] == 0;
    if (has_ended_[chunk]) held_ += bytes_.of_ended[chunk];
  }
  double held() const { return held_; }

 private:
  const HeldBytes& bytes_;
  std::vector<int64_t> in_flight_;  ///< of each chunk
  std::vector<bool> has_ended_;
  double held_ = 0;
};

}  // namespace

double most_held_bytes(const ScheduleShape& shape,
                       int64_t stage,
                       int64_t micro_batches,
                       const HeldBytes& bytes,
                       std::optional<int64_t> of_chunk) {
  ScheduleShape begin = shape;
  begin.micro_batches = micro_batches;
  HeldForwards forwards(bytes);
  double most = 0;
  bool is_paired = false;
  for (const PipelineStep& step : stage_steps(begin, stage)) {
    const auto chunk = static_cast<std::size_t>(step.chunk);
    if (step.kind == StepKind::kForward) {
      forwards.forward(chunk);
    } else {
      const double held = forwards.held() + (is_paired ? bytes.of_pair : 0);
      if (of_chunk.value_or(step.chunk) == step.chunk) most = std::max(most, held);
      forwards.backward(chunk);
    }
    is_paired = step.kind == StepKind::kForward;
  }
  return most;
}

}  // namespace estimator
