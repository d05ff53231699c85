#include "sim/cli/report/verify_report.h"

#include <fmt/format.h>

#include "estimator/base/units.h"
#include "sim/cli/report/table.h"

namespace sim {
namespace {

using estimator::with_commas;

int64_t count_differences(const Verification& verification) {
  int64_t count = 0;
  for (const RankVerification& rank : verification.ranks) count += rank.differences.count;
  return count;
}

std::string verdict_line(const Verification& verification) {
  const std::size_t ranks = verification.ranks.size();
  const std::string who =
      ranks == 1 ? "1 real rank" : fmt::format("{} real ranks over Gloo", ranks);
  if (verification.equal) {
    return fmt::format(
        "equal: {} made the same collectives and memory peaks as with the stub, and the same "
        "numbers as the whole model",
        who);
  }
  return fmt::format("different: {} against the stub and the whole model: {} differences",
                     who,
                     with_commas(count_differences(verification)));
}

Table rank_table(const Verification& verification) {
  Table table({{"rank"},
               {"tensor"},
               {"data"},
               {"stage"},
               {"collectives"},
               {"peak bytes"},
               {"tensors"},
               {"largest error / allowed error"},
               {"differences"}});
  for (const RankVerification& rank : verification.ranks) {
    table.add_row({std::to_string(rank.rank),
                   std::to_string(rank.coordinate.tensor),
                   std::to_string(rank.coordinate.data),
                   std::to_string(rank.coordinate.pipeline),
                   with_commas(rank.collectives),
                   with_commas(rank.peak_allocated_bytes),
                   with_commas(rank.tensors),
                   fmt::format("{:.1f} %", 100 * rank.largest_error),
                   with_commas(rank.differences.count)});
  }
  return table;
}

std::string differences_text(const RankVerification& rank) {
  std::string text;
  for (const Difference& difference : rank.differences.kept) {
    const bool is_tensor = difference.claim == Claim::kTensors;
    text += fmt::format("rank {}, {}, {}\n  {}: {}\n  real rank: {}\n",
                        difference.rank,
                        estimator::to_string(difference.claim),
                        difference.where,
                        is_tensor ? "whole model" : "stub",
                        difference.expected,
                        difference.found);
  }
  const int64_t more = rank.differences.count - static_cast<int64_t>(rank.differences.kept.size());
  if (more > 0) text += fmt::format("rank {}: {} more\n", rank.rank, with_commas(more));
  return text;
}

}  // namespace

std::string verification_text(const Verification& verification) {
  std::string text = verdict_line(verification) + "\n\n" + rank_table(verification).text();
  text += fmt::format(
      "\nCollectives and bytes are compared exactly, tensors by norm to {:.2g} (Adam with epsilon "
      "1e-3; in a 16-bit type to four times what the whole model's tensors are from fp32); both "
      "over two iterations.\n",
      verification.tolerance);
  if (verification.equal) return text;
  text += "\n";
  for (const RankVerification& rank : verification.ranks) text += differences_text(rank);
  return text;
}

TitledTable verification_table(const Verification& verification) {
  return {verdict_line(verification), rank_table(verification), {}};
}

}  // namespace sim
