#include "sim/exec/peak_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "estimator/base/units.h"
#include "estimator/profile/own_limit.h"
#include "sim/tracking/attribution.h"

namespace sim {
namespace {

int64_t bytes_of(const std::vector<estimator::PeakAllocation>& allocations) {
  return std::accumulate(
      allocations.begin(), allocations.end(), int64_t{0}, [](int64_t sum, const auto& block) {
        return sum + block.bytes;
      });
}

}  // namespace

void PeakLog::went_on(const ProgramParts& parts, size_t completed) {
  seen_failures_ = memory_.count_failures();
  if (!at_failure_) at_failure_ = now(parts);
  phases_until_failure_ = completed;
  tracker_.restart_peak();
}

void PeakLog::step_ended() {
  if (seen_failures_ > caught_failures_) memory_.forget_failure();
  caught_failures_ = seen_failures_;
}

Peak PeakLog::largest(const ProgramParts& parts, bool has_ended) const {
  Peak last = has_ended && at_end_ ? *at_end_ : now(parts);
  const bool is_caught = !memory_.first_failure();
  if (is_caught || !at_failure_) return last;
  return bytes_of(at_failure_->allocations) > bytes_of(last.allocations) ? *at_failure_ : last;
}

estimator::PeakRecord PeakLog::largest_of(const std::vector<estimator::PhaseRecord>& phases) const {
  const bool is_caught = caught_failures_ > 0 && !memory_.first_failure();
  const size_t first = is_caught ? std::min(phases_until_failure_, phases.size()) : 0;
  return largest_peak({phases.begin() + static_cast<std::ptrdiff_t>(first), phases.end()});
}

int64_t PeakLog::other_libraries_bytes(const Peak& peak,
                                       const estimator::PeakRecord& of_torch) const {
  if (!gpu_) return 0;
  const auto at_start = static_cast<int64_t>(gpu_.outside_bytes());
  return std::max<int64_t>(0, peak.used_bytes - at_start - of_torch.reserved_bytes);
}

std::optional<estimator::OutOfMemoryRecord> PeakLog::out_of_memory(
    const std::vector<std::string>& phases) const {
  const auto failure = memory_.first_failure();
  if (!failure) return std::nullopt;
  const OutOfMemoryPlace& place = failure->place;
  estimator::OutOfMemoryRecord record{
      .phase = phase_name(phases, place.phase),
      .module = module_path(tracker_, place.module),
      .operator_name = place.op == nullptr ? "" : place.op->name,
      .requested_bytes = failure->requested_bytes,
      .free_bytes = failure->free_bytes,
      .message = fmt::format("{} were asked for, {} were free",
                             estimator::format_gib(failure->requested_bytes),
                             estimator::format_gib(failure->free_bytes))};
  if (estimator::reached_own_limit(record)) {
    record.message += fmt::format(
        "; {} were reserved (torch.cuda.set_per_process_memory_fraction sets how much may be)",
        estimator::format_gib(place.reserved_bytes));
  }
  return record;
}

Peak PeakLog::now(const ProgramParts& parts) const {
  Peak peak;
  tracker_.locked([&](const TrackedRun& run) {
    peak.allocations = peak_allocations(run, parts.phases);
    peak.modules = module_records(run, parts.parameters);
  });
  if (gpu_) peak.used_bytes = static_cast<int64_t>(gpu_.most_used_bytes(memory_.device()));
  return peak;
}

}  // namespace sim
