#include "sim/cli/report/rank_memory_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/units.h"
#include "sim/cli/report/profile_report.h"

namespace sim {
namespace {

using estimator::ClusterEstimate;
using estimator::format_gib;
using estimator::RankClassEstimate;
using estimator::with_commas;

constexpr const char* kReserved =
    "simulated: what PyTorch's own allocator takes from the GPU, with what it loses between blocks";
constexpr const char* kContext =
    "assumed, with a band: the CUDA context and the workspaces of CUDA's libraries";
constexpr const char* kCommunicators =
    "assumed, with a band: NCCL's buffers by its channels, for each group of the rank";

}  // namespace

TitledTable rank_class_table(const estimator::Verdict& verdict,
                             const std::vector<RankClassEstimate>& classes) {
  Table table({{"rank", Align::kRight, "the rank that was run"},
               {"ranks like it", Align::kRight, "computed: ranks that do the same work"},
               {"stages"},
               {"parameters", Align::kRight, "simulated: counted in the shard that was built"},
               {"allocated", Align::kRight, kAllocatedSource},
               {"reserved", Align::kRight, kReserved},
               {"context", Align::kRight, kContext},
               {"communicators", Align::kRight, kCommunicators},
               {"total", Align::kRight, "reserved + context + communicators"},
               {"free", Align::kRight, "the GPU's memory less the total"},
               {"", Align::kLeft, "", "note"}});
  bool any_lifted = false;
  for (const RankClassEstimate& row : classes) {
    const bool worst = row.representative_rank == verdict.worst_rank;
    any_lifted = any_lifted || row.limit_lifted;
    table.add_row({std::to_string(row.representative_rank),
                   with_commas(row.count),
                   row.stages,
                   row.parameters > 0 ? with_commas(row.parameters) : "-",
                   gib(row.allocated_peak_bytes),
                   gib(row.reserved_peak_bytes),
                   gib(row.context_bytes),
                   gib(row.communicator_bytes),
                   gib(row.total_bytes),
                   gib(verdict.capacity_bytes - row.total_bytes),
                   fmt::format("{}{}", row.limit_lifted ? "*" : "", worst ? " worst" : "")});
  }
  TitledTable titled{.title = fmt::format("Peak memory of each class of equal ranks, in GiB of {}",
                                          gib(verdict.capacity_bytes)),
                     .table = std::move(table),
                     .notes = {}};
  if (any_lifted) titled.notes.emplace_back("* did not fit, and ran again without the limit");
  return titled;
}

const RankClassEstimate* worst_class(const estimator::Verdict& verdict,
                                     const std::vector<RankClassEstimate>& classes) {
  const auto worst = std::find_if(classes.begin(), classes.end(), [&](const auto& row) {
    return row.representative_rank == verdict.worst_rank;
  });
  return worst == classes.end() ? nullptr : &*worst;
}

std::vector<TitledTable> peak_tables(const RankClassEstimate& rank) {
  Table table({{"term", Align::kLeft},
               {"GiB"},
               {"at least"},
               {"at most"},
               {"source", Align::kLeft},
               {"", Align::kLeft, "", "note"}});
  for (const estimator::MemoryTerm& term : rank.terms) {
    const bool exact = term.low_bytes == term.high_bytes;
    table.add_row({term.name,
                   gib(term.value_bytes),
                   exact ? "" : gib(term.low_bytes),
                   exact ? "" : gib(term.high_bytes),
                   estimator::to_string(term.source),
                   term.note});
  }
  table.add_row({"total",
                 gib(rank.total_bytes),
                 gib(rank.total_low_bytes),
                 gib(rank.total_high_bytes),
                 "",
                 ""});
  std::vector<TitledTable> tables = {
      {.title = fmt::format("Memory of rank {}, the worst, at its peak in {}",
                            rank.representative_rank,
                            rank.peak_phase),
       .table = std::move(table),
       .notes = {}}};
  if (rank.peak_categories) {
    tables.push_back({.title = fmt::format("What fills the {} GiB that are allocated",
                                           gib(rank.allocated_peak_bytes)),
                      .table = category_table(*rank.peak_categories),
                      .notes = {}});
  }
  return tables;
}

/// The terms of the worst rank's memory; the notes in the last column say where they come from.
std::vector<TitledTable> worst_rank_tables(const RankClassEstimate& worst,
                                           const ReportStyle& style) {
  std::vector<TitledTable> tables = peak_tables(worst);
  if (!style.sources) tables.front().table = tables.front().table.without_last_column();
  return tables;
}

std::string out_of_memory_text(const RankClassEstimate& row) {
  if (!row.out_of_memory) return "";
  const estimator::OutOfMemoryRecord& record = *row.out_of_memory;
  return fmt::format("Rank {} ran out of memory in {}{}{}: asked for {}, {} were free",
                     row.representative_rank,
                     record.phase,
                     record.module.empty() ? "" : ", " + record.module,
                     record.operator_name.empty() ? "" : ", " + record.operator_name,
                     format_gib(record.requested_bytes),
                     format_gib(record.free_bytes));
}

std::string worst_rank_text(const estimator::Verdict& verdict,
                            const std::vector<RankClassEstimate>& classes,
                            const ReportStyle& style) {
  const RankClassEstimate* const worst = worst_class(verdict, classes);
  if (worst == nullptr) return "";
  const std::string out_of_memory = out_of_memory_text(*worst);
  const std::vector<TitledTable> tables = worst_rank_tables(*worst, style);
  return (out_of_memory.empty() ? "" : "\n" + out_of_memory + "\n") +
         following_tables(tables, style);
}

std::string host_memory_text(const ClusterEstimate& estimate) {
  if (!estimate.host_memory) return "";
  const estimator::HostMemoryEstimate& host = *estimate.host_memory;
  return fmt::format("\nHost memory for the optimizer: {} for a rank, {} for a machine ({}: {})\n",
                     format_gib(host.rank_bytes),
                     format_gib(host.node_bytes),
                     estimator::to_string(host.source),
                     host.note);
}

}  // namespace sim
