#include "sim/cli/report/profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "estimator/base/units.h"
#include "sim/cli/report/table.h"

namespace sim {
namespace {

using estimator::format_gib;
using estimator::format_mib;
using estimator::MemoryReading;
using estimator::PhaseRecord;
using estimator::RankProfile;
using estimator::with_commas;

using Phases = std::vector<PhaseRecord>;

constexpr const char* kAllocatedBytes =
    "simulated: bytes of PyTorch's own allocator while the rank ran";

std::string host_memory_text(const RankProfile& profile) {
  if (!profile.host_memory) return "";
  const estimator::HostMemoryRecord& host = *profile.host_memory;
  return fmt::format(
      "host memory for the optimizer: {} ({} master weights, {} moments, {} gradients; {} "
      "page-locked)\n",
      format_gib(host.total_bytes),
      format_gib(host.master_weight_bytes),
      format_gib(host.optimizer_state_bytes),
      format_gib(host.gradient_bytes),
      format_gib(host.page_locked_bytes));
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

/// The number in "iteration_12.optimizer_step"; -1 outside iterations.
int64_t iteration_of(const PhaseRecord& phase) {
  constexpr std::string_view kIterationPrefix = "iteration_";
  if (!phase.name.starts_with(kIterationPrefix)) return -1;
  return std::strtoll(phase.name.c_str() + kIterationPrefix.size(), nullptr, 10);
}

/// Up to the first phase of another iteration.
Phases::const_iterator end_of_iteration(Phases::const_iterator first, Phases::const_iterator end) {
  return std::find_if(first, end, [number = iteration_of(*first)](const PhaseRecord& phase) {
    return iteration_of(phase) != number;
  });
}

bool is_equal(const MemoryReading& a, const MemoryReading& b) {
  return a.allocated_bytes == b.allocated_bytes && a.reserved_bytes == b.reserved_bytes;
}

bool is_alike(const PhaseRecord& a, const PhaseRecord& b) {
  return is_equal(a.before, b.before) && is_equal(a.after, b.after) && is_equal(a.peak, b.peak) &&
         a.name.substr(a.name.find('.')) == b.name.substr(b.name.find('.'));
}

PhaseRecord as_one(Phases::const_iterator first, Phases::const_iterator end) {
  PhaseRecord one = *first;
  one.name = fmt::format("iterations {} to {}", iteration_of(*first), iteration_of(*(end - 1)));
  one.after = (end - 1)->after;
  for (auto phase = first + 1; phase != end; ++phase) {
    one.seconds += phase->seconds;
    one.peak.allocated_bytes = std::max(one.peak.allocated_bytes, phase->peak.allocated_bytes);
    one.peak.reserved_bytes = std::max(one.peak.reserved_bytes, phase->peak.reserved_bytes);
  }
  return one;
}

/// Two and more iterations with the readings of the one before them are one line.
Phases with_equal_iterations_folded(const Phases& phases) {
  Phases lines;
  for (auto next = phases.begin(); next != phases.end();) {
    const auto first = next;
    next = end_of_iteration(first, phases.end());
    lines.insert(lines.end(), first, next);
    auto end = next;
    while (iteration_of(*first) >= 0 && end != phases.end()) {
      const auto iteration_end = end_of_iteration(end, phases.end());
      if (!std::equal(first, next, end, iteration_end, is_alike)) break;
      end = iteration_end;
    }
    const bool are_several = end - next > next - first;
    if (!are_several) continue;
    lines.push_back(as_one(next, end));
    next = end;
  }
  return lines;
}

}  // namespace

Table phase_table(const RankProfile& profile) {
  const bool is_measured = profile.device.kind == estimator::DeviceKind::kCuda && !profile.program;
  Table table({{"phase (MiB)", Align::kLeft},
               {"before", Align::kRight, kAllocatedBytes},
               {"after", Align::kRight, kAllocatedBytes},
               {"delta"},
               {"peak allocated", Align::kRight, kAllocatedBytes},
               {"peak reserved", Align::kRight, "simulated: taken from the GPU by the allocator"},
               {is_measured ? "time" : "host time"}});
  for (const PhaseRecord& phase : with_equal_iterations_folded(profile.phases)) {
    const int64_t delta = phase.after.allocated_bytes - phase.before.allocated_bytes;
    table.add_row({phase.name,
                   format_mib(phase.before.allocated_bytes),
                   format_mib(phase.after.allocated_bytes),
                   fmt::format("{}{}", delta > 0 ? "+" : "", format_mib(delta)),
                   format_mib(phase.peak.allocated_bytes),
                   format_mib(phase.peak.reserved_bytes),
                   estimator::format_duration(phase.seconds)});
  }
  return table;
}

Table category_table(const estimator::CategoryBytes& categories) {
  Table table({{"what fills it", Align::kLeft},
               {"GiB", Align::kRight, "simulated: every allocation is followed until it is freed"},
               {"share"}});
  for (const auto& category : enum_names(estimator::MemoryCategory{})) {
    const int64_t bytes = categories[category.value];
    if (bytes == 0) continue;
    const double share = static_cast<double>(bytes) / static_cast<double>(categories.sum());
    table.add_row({category.name,
                   fmt::format("{:.2f}", static_cast<double>(bytes) / estimator::kGiB),
                   fmt::format("{:.1f} %", 100.0 * share)});
  }
  return table;
}

std::string peak_line(const estimator::PeakRecord& peak) {
  std::string text = fmt::format("peak: {} allocated, {} reserved, in {}",
                                 format_gib(peak.allocated_bytes),
                                 format_gib(peak.reserved_bytes),
                                 peak.phase);
  if (peak.direction) text += ", " + estimator::to_string(*peak.direction);
  if (peak.micro_batch) text += fmt::format(" of micro-batch {}", *peak.micro_batch);
  if (!peak.module.empty()) text += ", module " + peak.module;
  if (!peak.operator_name.empty()) text += ", operator " + peak.operator_name;
  return text;
}

std::string peak_text(const estimator::PeakRecord& peak) {
  return peak_line(peak) + "\n" + (peak.categories ? category_table(*peak.categories).text(2) : "");
}

std::string rank_text(int64_t rank, const estimator::RankCoordinate& coordinate) {
  return fmt::format("{} (tensor {}, data {}, stage {})",
                     rank,
                     coordinate.tensor,
                     coordinate.data,
                     coordinate.pipeline);
}

std::vector<TitledTable> profile_tables(const RankProfile& profile) {
  std::vector<TitledTable> tables = {{"Phases", phase_table(profile), {peak_line(profile.peak)}}};
  if (profile.peak.categories) {
    tables.push_back({"What fills the peak", category_table(*profile.peak.categories), {}});
  }
  return tables;
}

std::string phases_text(const RankProfile& profile) {
  return phase_table(profile).text() + "\n" + peak_text(profile.peak);
}

std::string allocator_text(const RankProfile& profile) {
  const estimator::AllocatorRecord& allocator = profile.allocator;
  if (allocator.device_allocations == 0 || profile.peak.reserved_bytes == 0) return "";
  const int64_t idle = profile.peak.reserved_bytes - profile.peak.allocated_bytes;
  return fmt::format(
      "allocator: {} reserved, {:.1f} % of it never allocated; at most {} in inactive split "
      "blocks; {} segments; {}\n",
      format_gib(profile.peak.reserved_bytes),
      100.0 * static_cast<double>(idle) / static_cast<double>(profile.peak.reserved_bytes),
      format_gib(allocator.inactive_split_peak_bytes),
      allocator.segments_peak,
      allocator.retries == 0
          ? "its cache never freed to make room"
          : fmt::format("its cache freed {} times to make room", allocator.retries));
}

std::string profile_text(const RankProfile& profile) {
  std::string text = fmt::format("rank {}: {} parameters ({}), {} of {} micro-batches executed\n\n",
                                 rank_text(profile.rank, profile.coordinate),
                                 with_commas(profile.parameters.count),
                                 format_gib(profile.parameters.bytes),
                                 profile.micro_batches.executed,
                                 profile.micro_batches.total);
  return text + phases_text(profile) + allocator_text(profile) + host_memory_text(profile) +
         lifted_limit_text(profile);
}

}  // namespace sim
