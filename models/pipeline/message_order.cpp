#include "models/pipeline/message_order.h"

#include <algorithm>

namespace models {

using estimator::PipelineStep;
using estimator::StepKind;

namespace {

bool is_backward_at(const Steps& steps, std::size_t i) {
  return i < steps.size() && steps[i].kind == StepKind::kBackward;
}

/// Of the kind, from steps[i] on.
std::optional<PipelineStep> next_of(const Steps& steps, std::size_t i, StepKind kind) {
  const auto found = std::find_if(steps.begin() + static_cast<std::ptrdiff_t>(i),
                                  steps.end(),
                                  [kind](const PipelineStep& step) { return step.kind == kind; });
  return found == steps.end() ? std::nullopt : std::optional(*found);
}

/// Whether some forward is paired: not all are in the warm-up.
bool has_pairs(const Steps& steps) {
  const auto first = std::find_if(steps.begin(), steps.end(), [](const PipelineStep& step) {
    return step.kind == StepKind::kBackward;
  });
  return next_of(steps, static_cast<std::size_t>(first - steps.begin()), StepKind::kForward)
      .has_value();
}

bool comes_from_other_end(StepKind kind, const MessageRules& rules) {
  return kind == StepKind::kForward ? rules.stage == 0 : rules.stage == rules.stages - 1;
}

/// The step whose message comes once steps[i] has ended. The other end of the pipeline does the
/// same steps, `stages` - 1 of the kind later.
std::optional<PipelineStep> message_after(const Steps& steps,
                                          std::size_t i,
                                          StepKind kind,
                                          const MessageRules& rules) {
  if (!comes_from_other_end(kind, rules)) return next_of(steps, i + 1, kind);
  Steps of_kind;
  int64_t done = 0;
  for (std::size_t at = 0; at < steps.size(); ++at) {
    if (steps[at].kind != kind) continue;
    of_kind.push_back(steps[at]);
    if (at <= i) ++done;
  }
  if (done < rules.stages) return std::nullopt;
  PipelineStep wanted = of_kind[static_cast<std::size_t>(done - rules.stages)];
  wanted.chunk += kind == StepKind::kForward ? 1 : -1;
  const bool exists = std::find(steps.begin(), steps.end(), wanted) != steps.end();
  return exists ? std::optional(wanted) : std::nullopt;
}

}  // namespace

std::vector<int64_t> next_chunks(const Steps& steps, std::size_t i, std::size_t most) {
  std::vector<int64_t> chunks;
  for (; i < steps.size() && chunks.size() < most; ++i) {
    const auto found = std::find(chunks.begin(), chunks.end(), steps[i].chunk);
    if (found == chunks.end()) chunks.push_back(steps[i].chunk);
  }
  return chunks;
}

bool is_paired(const Steps& steps, std::size_t i) {
  return !is_backward_at(steps, i) && is_backward_at(steps, i + 1) && has_pairs(steps);
}

Steps received_after(const Steps& steps, std::size_t i, const MessageRules& rules) {
  const bool before = received_before(steps, i, rules).has_value();
  Steps received;
  const auto receive = [&](StepKind kind) {
    if (const auto step = message_after(steps, i, kind, rules)) received.push_back(*step);
  };
  const bool backward = is_backward_at(steps, i);
  const bool input_now = backward ? !rules.overlaps : rules.overlaps || !is_paired(steps, i);
  if (input_now && !before) receive(StepKind::kForward);
  const bool warmed_up = !backward && !is_paired(steps, i) && is_paired(steps, i + 1);
  if ((backward && !before) || warmed_up) receive(StepKind::kBackward);
  return received;
}

std::optional<PipelineStep> received_before(const Steps& steps,
                                            std::size_t i,
                                            const MessageRules& rules) {
  if (!rules.overlaps_warm_up || comes_from_other_end(steps[i].kind, rules)) return std::nullopt;
  const bool backward = is_backward_at(steps, i);
  const bool steady = backward ? i > 0 && is_paired(steps, i - 1) : is_paired(steps, i);
  return steady ? std::nullopt : next_of(steps, i + 1, steps[i].kind);
}

}  // namespace models
