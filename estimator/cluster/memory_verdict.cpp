#include "estimator/cluster/memory_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "estimator/base/units.h"
#include "estimator/memory/communicator_memory.h"
#include "estimator/memory/context_memory.h"
#include "estimator/memory/dispatcher_memory.h"
#include "estimator/memory/user_buffer_memory.h"

namespace estimator {
namespace {

std::string allocator_note(const DeviceRecord& device) {
  switch (device.kind) {
    case DeviceKind::kCuda:
      return fmt::format("largest of all phases on {}", device.name);
    case DeviceKind::kVirtual:
      return "largest of all phases of PyTorch's own CUDA allocator on the virtual GPU";
    case DeviceKind::kCpu:
      break;
  }
  return "tensors counted on the CPU in blocks of 512 bytes; segments are not modelled";
}

MemoryTerm allocator_term(const RankProfile& profile) {
  return exact_memory(
      "allocator, reserved",
      profile.peak.reserved_bytes,
      profile.device.kind == DeviceKind::kCuda ? Source::kMeasured : Source::kSimulated,
      allocator_note(profile.device));
}

Fit fit_of_row(const RankClassEstimate& row, int64_t limit_bytes) {
  if (row.limit_lifted) return Fit::kDoesNotFit;
  return fit_of(row.total_low_bytes, row.total_high_bytes, limit_bytes);
}

std::string who(const RankClassEstimate& row) {
  if (row.stages.empty()) return fmt::format("rank {}", row.representative_rank);
  return fmt::format("rank {} (stage {})", row.representative_rank, row.coordinate.pipeline);
}

/// Of a plan all ranks are like one that was executed; of a program nobody said so.
std::string compared_with(const RankClassEstimate& worst, std::size_t rows) {
  if (!worst.stages.empty()) return ", the most of all ranks,";
  return rows > 1 ? fmt::format(", the most of the {} ranks that were run,", rows) : "";
}

std::string reason(const RankClassEstimate& worst,
                   std::size_t rows,
                   int64_t capacity_bytes,
                   int64_t headroom_bytes) {
  const int64_t left = capacity_bytes - worst.total_bytes;
  const Fit fit = fit_of_row(worst, capacity_bytes - headroom_bytes);
  const std::string needs = fmt::format(
      "{} needs {} of {}", who(worst), format_gib(worst.total_bytes), format_gib(capacity_bytes));
  if (fit == Fit::kTooClose) {
    return fmt::format("{}{}; what is not known exactly makes it {} at least and {} at most",
                       needs,
                       headroom_bytes > 0
                           ? fmt::format(" less the headroom of {}", format_gib(headroom_bytes))
                           : "",
                       format_gib(worst.total_low_bytes),
                       format_gib(worst.total_high_bytes));
  }
  if (fit == Fit::kFits) {
    return fmt::format("{}{} and leaves {}", needs, compared_with(worst, rows), format_gib(left));
  }
  const std::string& phase = worst.out_of_memory ? worst.out_of_memory->phase : worst.peak_phase;
  if (left < 0) return fmt::format("{}: {} too much, in {}", needs, format_gib(-left), phase);
  if (worst.limit_lifted) {
    return fmt::format(
        "{}, yet ran out of memory in {}: its free blocks are too small (fragmentation)",
        needs,
        phase);
  }
  return fmt::format("{} and leaves {}: less than the headroom of {} that the plan asks for",
                     needs,
                     format_gib(left),
                     format_gib(headroom_bytes));
}

}  // namespace

Fit fit_of(int64_t low_bytes, int64_t high_bytes, int64_t limit_bytes) {
  if (low_bytes > limit_bytes) return Fit::kDoesNotFit;
  return high_bytes > limit_bytes ? Fit::kTooClose : Fit::kFits;
}

std::string fit_words(Fit fit) {
  std::string words = to_string(fit);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

namespace {

RankClassEstimate row_of(const RankProfile& profile, std::vector<MemoryTerm> outside) {
  RankClassEstimate row;
  row.representative_rank = profile.rank;
  row.coordinate = profile.coordinate;
  row.parameters = profile.parameters.count;
  row.allocated_peak_bytes = profile.peak.allocated_bytes;
  row.reserved_peak_bytes = profile.peak.reserved_bytes;
  row.peak_categories = profile.peak.categories;
  row.limit_lifted = profile.limit_lifted;
  if (profile.host_memory) row.host_bytes = profile.host_memory->total_bytes;
  row.out_of_memory = profile.out_of_memory;
  row.peak_phase = profile.peak.phase;
  row.terms = {allocator_term(profile)};
  for (MemoryTerm& term : outside) {
    row.context_bytes += term.value_bytes;
    row.terms.push_back(std::move(term));
  }
  return row;
}

/// Appends what communication takes.
void add_communication(std::vector<MemoryTerm> terms, RankClassEstimate& row) {
  for (MemoryTerm& term : terms) {
    row.communicator_bytes += term.value_bytes;
    row.terms.push_back(std::move(term));
  }
}

void sum_up(RankClassEstimate& row) {
  for (const MemoryTerm& term : row.terms) {
    row.total_bytes += term.value_bytes;
    row.total_low_bytes += term.low_bytes;
    row.total_high_bytes += term.high_bytes;
  }
}

/// What the driver and its libraries hold before the first tensor.
std::vector<MemoryTerm> context_terms(const Gpu& gpu, ModuleLoading loading) {
  return {context_memory(gpu, loading), library_memory(gpu)};
}

}  // namespace

RankClassEstimate class_memory(const Plan& plan,
                               const RankClass& rank_class,
                               const RankProfile& profile,
                               const ParallelLayout& layout,
                               const Fabric& fabric) {
  RankClassEstimate row =
      row_of(profile, context_terms(gpu_of(plan.cluster), plan.memory.cuda_module_loading));
  row.count = rank_class.count;
  row.stages = stages_to_text(rank_class.stages);
  add_communication(communicator_memory(profile, layout, fabric), row);
  if (auto buffers = user_buffer_memory(plan)) add_communication({std::move(*buffers)}, row);
  if (auto buffers = dispatcher_memory(plan, layout, fabric)) {
    add_communication({std::move(*buffers)}, row);
  }
  sum_up(row);
  return row;
}

namespace {

/// What the virtual GPU was asked for by others than PyTorch's allocator.
std::optional<MemoryTerm> other_libraries(const ProgramRecord& program) {
  const int64_t bytes = program.other_libraries_bytes;
  if (bytes == 0) return std::nullopt;
  return exact_memory("other libraries",
                      bytes,
                      Source::kSimulated,
                      "taken with calls of CUDA beside PyTorch's allocator, when most of the "
                      "virtual GPU was in use");
}

}  // namespace

RankClassEstimate program_memory(const RankProfile& profile, const Gpu& gpu, const Fabric& fabric) {
  std::vector<MemoryTerm> outside = context_terms(gpu, MemoryConfig().cuda_module_loading);
  if (auto others = other_libraries(*profile.program)) outside.push_back(std::move(*others));
  RankClassEstimate row = row_of(profile, std::move(outside));
  row.count = 1;
  add_communication(communicator_memory(*profile.program, fabric), row);
  sum_up(row);
  return row;
}

Verdict memory_verdict(int64_t headroom_bytes,
                       const Gpu& gpu,
                       const std::vector<RankClassEstimate>& classes) {
  const int64_t limit = gpu.memory_bytes - headroom_bytes;
  const auto severity = [&](const RankClassEstimate& row) {
    return std::tuple(fit_of_row(row, limit), row.total_bytes);
  };
  const RankClassEstimate& worst =
      *std::max_element(classes.begin(), classes.end(), [&](const auto& a, const auto& b) {
        return severity(a) < severity(b);
      });
  return {.outcome = fit_of_row(worst, limit),
          .worst_rank = worst.representative_rank,
          .peak_bytes = worst.total_bytes,
          .peak_low_bytes = worst.total_low_bytes,
          .peak_high_bytes = worst.total_high_bytes,
          .capacity_bytes = gpu.memory_bytes,
          .headroom_bytes = gpu.memory_bytes - worst.total_bytes,
          .reason = reason(worst, classes.size(), gpu.memory_bytes, headroom_bytes)};
}

}  // namespace estimator
