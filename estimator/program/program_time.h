// The step time of a program, from the traces of the ranks that were run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/base/tagged.h"
#include "estimator/program/program_replay.h"

namespace estimator {

/// What the GPU of a rank does for one kind of work in an iteration, or its host's CPUs for the
/// optimizer.
struct WorkTerm {
  std::string name;
  int64_t launches = 0;
  double seconds = 0;  ///< sum over streams, also of what runs beside other work
  double flops = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, WorkTerm& term) {
  visit("name", term.name, "which kind of work");
  visit("launches", term.launches, "in one iteration");
  visit("seconds", term.seconds, "their sum, also of those that run beside others");
  visit("flops", term.flops, "of matrix products and attention");
}

/// The iteration of one rank is computation + exposed communication + idle.
struct RankTime {
  int64_t rank = 0;
  double computation_seconds = 0;            ///< some stream computes or copies
  double exposed_communication_seconds = 0;  ///< NCCL alone is at work
  double idle_seconds = 0;                   ///< nothing is at work
  double host_seconds = 0;  ///< the host's issuing, by published costs, without updates on the CPU
  BoardUse board;
  std::vector<WorkTerm> terms;
};
template <class Visitor>
void visit_fields(Visitor& visit, RankTime& time) {
  visit("rank", time.rank, "which rank");
  visit("computation_seconds", time.computation_seconds, "some stream computes or copies");
  visit("exposed_communication_seconds",
        time.exposed_communication_seconds,
        "communication alone is at work");
  visit("idle_seconds", time.idle_seconds, "nothing is at work");
  visit("host_seconds", time.host_seconds, "the host's issuing, by published costs");
  visit("board", time.board, "what the step needs of the board's power");
  visit("terms", time.terms, "by kind of work");
}

struct ProgramTime {
  double iteration_seconds = 0;
  /// Mean of the ranks that were replayed: FLOPs of matrix products and attention as they were run,
  /// also of those that are run again (recompute).
  double flops = 0;
  double hfu = 0;          ///< these FLOPs over the iteration and the GPU's dense 16-bit peak
  double model_flops = 0;  ///< the same without what is run again (program_flops.h)
  double mfu = 0;
  std::string mfu_note;  ///< what is not known of it, or ""
  /// What the recorded iteration has that other iterations do not have, or lacks, and why it may be
  /// shorter; mostly nothing.
  std::vector<std::string> step_notes;
  std::vector<RankTime> ranks;
  /// Kernels of no known operator, priced by the blocks of memory that they were given.
  std::vector<WorkTerm> priced_by_memory;
  /// Attention over sequences one behind the other, whose lengths the host did not know.
  std::vector<WorkTerm> unknown_lengths;
  /// flex_attention with masks of which it is not known how much they leave.
  std::vector<WorkTerm> unknown_masks;
  /// What goes to and from memory of other ranks that this one has mapped, and their signals.
  std::vector<WorkTerm> between_ranks;
  /// Kernels of which only the launch is priced.
  std::vector<WorkTerm> not_priced;
  std::vector<RateTerm> rates;
};
template <class Visitor>
void visit_fields(Visitor& visit, ProgramTime& time) {
  visit("iteration_seconds", time.iteration_seconds, "from one optimizer step to the next");
  visit("flops", time.flops, "of products and attention as they were run, mean of the ranks");
  visit("hfu",
        time.hfu,
        "these over the GPU's dense 16-bit peak, in the measured step if one is given");
  visit("model_flops", time.model_flops, "the same without what is run again");
  visit("mfu", time.mfu, "these over the GPU's dense 16-bit peak, as for hfu");
  visit("mfu_note", time.mfu_note, "what is not known of it, or \"\"");
  visit(
      "step_notes",
      time.step_notes,
      "what the recorded iteration has that other iterations do not have, or lacks, and why it may "
      "be shorter");
  visit("ranks", time.ranks, "each rank that was run");
  visit("priced_by_memory",
        time.priced_by_memory,
        "kernels of no known operator, priced by the memory that they were given");
  visit("unknown_lengths",
        time.unknown_lengths,
        "attention over sequences one behind the other whose lengths are not known");
  visit("unknown_masks",
        time.unknown_masks,
        "flex_attention with masks of which it is not known how much they leave: all blocks are "
        "taken that may be left");
  visit("between_ranks",
        time.between_ranks,
        "copies and kernels that read or write memory of other ranks, and their signals");
  visit("not_priced", time.not_priced, "kernels of which only the launch is priced");
  visit("rates", time.rates, "of the GPU");
}

/// Why the ranks have no step time, and what to do about it: no iteration was recorded whole, or a
/// rank waits for messages of a rank that was not run (program_ranks.h). Empty if they have one.
std::optional<std::string> lacks_time(const std::vector<RankProfile>& profiles);

ProgramTime program_time(const ProgramReplay& replayed);

}  // namespace estimator
