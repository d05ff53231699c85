#include "sim/cli/profile_report.h"

#include <fmt/format.h>

#include "estimator/units.h"
#include "sim/cli/table.h"

namespace sim {
namespace {

using estimator::format_gib;
using estimator::format_mib;
using estimator::MemoryReading;
using estimator::RankProfile;
using estimator::with_commas;

/// Allocated bytes before, after and at the peak; reserved bytes at the peak. Only a real GPU's
/// time says how long a phase takes; elsewhere it is what the host needed to run it.
std::string phase_table(const RankProfile& profile) {
  const bool is_measured = profile.device.kind == estimator::DeviceKind::kCuda;
  Table table({{"phase (MiB)", Align::kLeft},
               {"before"},
               {"after"},
               {"delta"},
               {"peak allocated"},
               {"peak reserved"},
               {is_measured ? "time" : "host time"}});
  for (const estimator::PhaseRecord& phase : profile.phases) {
    const int64_t delta = phase.after.allocated_bytes - phase.before.allocated_bytes;
    table.add_row({phase.name,
                   format_mib(phase.before.allocated_bytes),
                   format_mib(phase.after.allocated_bytes),
                   fmt::format("{}{}", delta > 0 ? "+" : "", format_mib(delta)),
                   format_mib(phase.peak.allocated_bytes),
                   format_mib(phase.peak.reserved_bytes),
                   estimator::format_duration(phase.seconds)});
  }
  return table.text();
}

std::string peak_text(const estimator::PeakRecord& peak) {
  std::string text = fmt::format("peak: {} allocated, {} reserved, in {}",
                                 format_gib(peak.allocated_bytes),
                                 format_gib(peak.reserved_bytes),
                                 peak.phase);
  if (!peak.module.empty()) text += ", module " + peak.module;
  if (!peak.operator_name.empty()) text += ", operator " + peak.operator_name;
  return text + "\n";
}

std::string lifted_limit_text(const RankProfile& profile) {
  if (!profile.limit_lifted) return "";
  std::string text = fmt::format("does not fit in {}: it ran again without the limit",
                                 format_gib(profile.device.total_bytes));
  if (profile.out_of_memory) {
    text +=
        fmt::format("\n  in {}: {}", profile.out_of_memory->phase, profile.out_of_memory->message);
  }
  return text + "\n";
}

}  // namespace

std::string rank_text(int64_t rank, const estimator::RankCoordinate& coordinate) {
  return fmt::format("{} (tensor {}, data {}, stage {})",
                     rank,
                     coordinate.tensor,
                     coordinate.data,
                     coordinate.pipeline);
}

std::string profile_text(const RankProfile& profile) {
  std::string text = fmt::format("rank {}: {} parameters ({}), {} of {} micro-batches executed\n\n",
                                 rank_text(profile.rank, profile.coordinate),
                                 with_commas(profile.parameters.count),
                                 format_gib(profile.parameters.bytes),
                                 profile.micro_batches.executed,
                                 profile.micro_batches.total);
  return text + phase_table(profile) + "\n" + peak_text(profile.peak) + lifted_limit_text(profile);
}

}  // namespace sim
