#include "estimator/schedule/zero_bubble_schedules.h"

#include <algorithm>
#include <array>
#include <deque>

#include "estimator/schedule/chunked_order.h"

namespace estimator {
namespace {

constexpr int kOut = 0;   // the chunk on the way there
constexpr int kBack = 1;  // the chunk on the way back

/// Writes the list of a V: each kind of step counts the micro-batches of each chunk by itself.
class VList {
 public:
  void forward(int chunk) { add(StepKind::kForward, chunk, forwards_[chunk]++); }

  /// Whole, or the first part; the second one is then owed.
  void backward(int chunk, bool split) {
    const int64_t micro_batch = backwards_[chunk]++;
    add(split ? StepKind::kBackwardInput : StepKind::kBackward, chunk, micro_batch);
    if (split) owed_.push_back({chunk, micro_batch});
  }

  /// The second part that is owed longest, if any is.
  void weight() {
    if (!owed_.empty()) pay(owed_.begin());
  }

  /// The same among those of one chunk.
  void weight(int chunk) {
    const auto found = std::find_if(
        owed_.begin(), owed_.end(), [&](const Owed& owed) { return owed.chunk == chunk; });
    if (found != owed_.end()) pay(found);
  }

  int64_t forwards(int chunk) const { return forwards_[chunk]; }
  bool owes() const { return !owed_.empty(); }

  std::vector<PipelineStep> steps;

 private:
  struct Owed {
    int chunk;
    int64_t micro_batch;
  };

  void add(StepKind kind, int chunk, int64_t micro_batch) {
    steps.push_back(
        {.kind = kind, .micro_batch = static_cast<int32_t>(micro_batch), .chunk = chunk});
  }

  void pay(const std::deque<Owed>::iterator& owed) {
    add(StepKind::kBackwardWeight, owed->chunk, owed->micro_batch);
    owed_.erase(owed);
  }

  std::array<int64_t, 2> forwards_{}, backwards_{};
  std::deque<Owed> owed_;
};

void repeat(int64_t times, const auto& work) {
  for (int64_t i = 0; i < times; ++i) work();
}

}  // namespace

std::vector<PipelineStep> zero_bubble_h1_steps(const ScheduleShape& shape, int64_t stage) {
  const int64_t forwards = shape.micro_batches * shape.chunks;
  const int64_t warm_up = warm_up_forwards(shape, stage);
  std::vector<PipelineStep> steps;
  steps.reserve(static_cast<std::size_t>(3 * forwards));
  ChunkedOrder forward(shape, ChunkedOrder::Way::kForward);
  ChunkedOrder input(shape, ChunkedOrder::Way::kBackward);
  ChunkedOrder weight(shape, ChunkedOrder::Way::kBackward);
  for (int64_t i = 0; i < warm_up; ++i) steps.push_back(forward.next(StepKind::kForward));
  for (int64_t i = 0; i < forwards; ++i) {
    if (i < forwards - warm_up) steps.push_back(forward.next(StepKind::kForward));
    steps.push_back(input.next(StepKind::kBackwardInput));
    if (i >= stage) steps.push_back(weight.next(StepKind::kBackwardWeight));
  }
  for (int64_t i = 0; i < std::min(stage, forwards); ++i) {
    steps.push_back(weight.next(StepKind::kBackwardWeight));
  }
  return steps;
}

std::vector<PipelineStep> zero_bubble_v_steps(const ScheduleShape& shape, int64_t stage) {
  // The list is made for enough micro-batches to fill the pipeline; surplus ones are left out.
  const int64_t micro_batches = std::max(2 * shape.stages - 1, shape.micro_batches);
  const int64_t after = shape.stages - stage;  // this stage and those after it
  VList list;
  const auto backward_back = [&] {
    list.backward(kBack, true);
    list.weight(kBack);
  };
  repeat(2 * after - 1, [&] { list.forward(kOut); });
  repeat(stage, [&] {
    list.forward(kBack);
    list.forward(kOut);
  });
  repeat(after, [&] {
    list.forward(kBack);
    backward_back();
  });
  while (list.forwards(kBack) < list.forwards(kOut) || list.forwards(kOut) < micro_batches) {
    if (list.forwards(kOut) < micro_batches) list.forward(kOut);
    list.backward(kOut, true);
    list.weight(kOut);
    list.forward(kBack);
    backward_back();
  }
  repeat(stage, [&] {
    list.backward(kOut, true);
    list.backward(kBack, true);
  });
  repeat(after, [&] {
    list.backward(kOut, true);
    list.weight(kOut);
  });
  repeat(stage, [&] { list.weight(kBack); });
  while (list.owes()) list.weight();
  std::erase_if(list.steps,
                [&](const PipelineStep& step) { return step.micro_batch >= shape.micro_batches; });
  return std::move(list.steps);
}

std::vector<PipelineStep> dual_pipe_v_steps(const ScheduleShape& shape, int64_t stage) {
  const int64_t after = shape.stages - stage - 1;
  VList list;
  repeat(2 * after, [&] { list.forward(kOut); });
  repeat(stage + 1, [&] {
    list.forward(kOut);
    list.forward(kBack);
  });
  repeat(after, [&] {
    list.backward(kBack, true);
    list.weight();
    list.forward(kBack);
  });
  repeat(shape.micro_batches - 2 * shape.stages + stage + 1, [&] {
    list.forward(kOut);
    list.backward(kBack, false);
    list.forward(kBack);
    list.backward(kOut, false);
  });
  repeat(after, [&] {
    list.backward(kBack, false);
    list.forward(kBack);
    list.backward(kOut, false);
  });
  // The second half is split; where it begins alternates, so that neighbours fit each other.
  bool split = false;
  for (int64_t i = 0; i < stage + 1; ++i) {
    const bool half = i == (stage + 1) / 2;
    if (half && stage % 2 == 1) split = true;
    list.backward(kBack, split);
    if (half) split = true;
    list.backward(kOut, split);
  }
  repeat(after, [&] {
    list.weight();
    list.backward(kOut, split);
  });
  while (list.owes()) list.weight();
  return std::move(list.steps);
}

}  // namespace estimator
