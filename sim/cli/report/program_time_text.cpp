#include "sim/cli/report/program_time_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "estimator/base/units.h"
#include "sim/cli/report/step_report.h"
#include "sim/cli/report/table.h"
#include "sim/cli/report/training_report.h"

namespace sim {
namespace {

using estimator::format_duration;
using estimator::ProgramTime;
using estimator::RankTime;
using estimator::whole_with_commas;
using estimator::with_commas;
using estimator::WorkTerm;

std::string share_of(double seconds, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", seconds / whole * 100) : "-";
}

TitledTable rank_table(const ProgramTime& time) {
  Table table({{"rank"}, {"computation"}, {"exposed communication"}, {"idle"}, {"host issues"}});
  for (const RankTime& rank : time.ranks) {
    table.add_row({std::to_string(rank.rank),
                   format_duration(rank.computation_seconds),
                   format_duration(rank.exposed_communication_seconds),
                   format_duration(rank.idle_seconds),
                   format_duration(rank.host_seconds)});
  }
  return {.title = "", .table = std::move(table), .notes = {}};
}

const RankTime& busiest(const ProgramTime& time) {
  return *std::max_element(
      time.ranks.begin(), time.ranks.end(), [](const RankTime& a, const RankTime& b) {
        return a.computation_seconds < b.computation_seconds;
      });
}

std::string rate_text(const WorkTerm& term) {
  if (term.flops == 0 || term.seconds == 0) return "";
  return fmt::format("{:.0f} TFLOP/s", term.flops / term.seconds * 1e-12);
}

TitledTable work_table(const ProgramTime& time) {
  const RankTime& rank = busiest(time);
  Table table({{fmt::format("work of rank {}", rank.rank), Align::kLeft},
               {"launches"},
               {"seconds"},
               {"of the iteration"},
               {"", Align::kRight, "", "rate"}});
  for (const WorkTerm& term : rank.terms) {
    table.add_row({term.name,
                   with_commas(term.launches),
                   format_duration(term.seconds),
                   share_of(term.seconds, time.iteration_seconds),
                   rate_text(term)});
  }
  return {.title = "", .table = std::move(table), .notes = {}};
}

/// The first few, and how much they take in all.
std::string weak_prices_text(const char* title,
                             const std::vector<WorkTerm>& terms,
                             double iteration_seconds) {
  if (terms.empty()) return "";
  constexpr std::size_t kMost = 5;
  double seconds = 0;
  int64_t launches = 0;
  for (const WorkTerm& term : terms) {
    seconds += term.seconds;
    launches += term.launches;
  }
  std::string text = fmt::format("\n{}: {} launches, {} ({} of the iteration)\n",
                                 title,
                                 with_commas(launches),
                                 format_duration(seconds),
                                 share_of(seconds, iteration_seconds));
  for (std::size_t i = 0; i < std::min(kMost, terms.size()); ++i) {
    text += fmt::format("  {} x{}, {}\n",
                        terms[i].name,
                        with_commas(terms[i].launches),
                        format_duration(terms[i].seconds));
  }
  if (terms.size() > kMost) text += fmt::format("  and {} more\n", terms.size() - kMost);
  return text;
}

std::string flops_text(const estimator::ProgramEstimate& estimate) {
  const ProgramTime& time = *estimate.time;
  const double seconds =
      estimate.measured_step ? estimate.measured_step->seconds : time.iteration_seconds;
  const auto tera_per_second = [&](double flops) {
    return seconds > 0 ? flops / seconds * 1e-12 : 0;
  };
  std::string text = fmt::format(
      "\nstep time {} (simulated){}: {:.0f} TFLOP/s a GPU of products and attention as they were "
      "run, {:.1f} % of the 16-bit peak (HFU)\n  {:.0f} TFLOP/s without what runs again, and the "
      "optimizer's products: MFU {:.1f} %\n",
      format_duration(time.iteration_seconds),
      estimate.measured_step
          ? fmt::format(", {} measured (given): x {:.3f} for all but the parts of the step",
                        format_duration(seconds),
                        estimate.measured_step->factor)
          : "",
      tera_per_second(time.flops),
      time.hfu * 100,
      tera_per_second(time.model_flops),
      time.mfu * 100);
  for (const std::string& note : time.step_notes) text += fmt::format("  ({})\n", note);
  return text + (time.mfu_note.empty() ? "" : fmt::format("  ({})\n", time.mfu_note));
}

std::string throughput_text_of(const estimator::ProgramThroughput& throughput) {
  if (!throughput.tokens_per_step) {
    return fmt::format("  tokens/s are not known: {}\n", throughput.tokens_note);
  }
  if (!throughput.tokens_per_second) return "";  // nothing was priced
  return fmt::format("  {} tokens/s, {:.1f} for each GPU{}; {} tokens a step ({}{}{})\n",
                     whole_with_commas(*throughput.tokens_per_second),
                     *throughput.tokens_per_second_per_gpu,
                     throughput.samples_per_second
                         ? fmt::format(", {:.2f} samples/s", *throughput.samples_per_second)
                         : "",
                     with_commas(*throughput.tokens_per_step),
                     estimator::to_string(throughput.tokens_source),
                     throughput.tokens_note.empty() ? "" : ": ",
                     throughput.tokens_note);
}

/// Of the rank whose GPU is slowed most.
std::string board_text(const ProgramTime& time) {
  const auto slowest = std::min_element(
      time.ranks.begin(), time.ranks.end(), [](const RankTime& a, const RankTime& b) {
        return a.board.speed < b.board.speed;
      });
  if (slowest == time.ranks.end() || slowest->board.limit_watts == 0) return "";
  const estimator::BoardUse& board = slowest->board;
  return fmt::format(
      "{} at {}\n",
      board_words(board),
      board.speed == 1 ? "full speed" : fmt::format("{:.0f} % of full speed", 100 * board.speed));
}

/// "" where every rank was run.
std::string stand_in_text(const estimator::ProgramEstimate& estimate) {
  const auto run = std::ssize(estimate.ranks);
  if (run >= estimate.world_size) return "";
  const int64_t first = estimate.ranks.front().representative_rank;
  return fmt::format("{} for all {}, whose work may differ\n",
                     run == 1 ? fmt::format("  rank {} alone was run, and stands", first)
                              : fmt::format("  the {} ranks that were run stand", run),
                     with_commas(estimate.world_size));
}

}  // namespace

std::vector<TitledTable> program_time_tables(const ProgramTime& time) {
  return {rank_table(time), work_table(time)};
}

std::string program_time_text(const estimator::ProgramEstimate& estimate) {
  const ProgramTime& time = *estimate.time;
  return flops_text(estimate) + throughput_text_of(*estimate.throughput) + board_text(time) +
         tables_in(program_time_tables(time)) + stand_in_text(estimate) +
         weak_prices_text("priced by the memory that the kernels were given",
                          time.priced_by_memory,
                          time.iteration_seconds) +
         weak_prices_text(
             "attention over sequences whose lengths are not known: half of a query's keys are "
             "taken "
             "to be those of a mean sequence, half those of the longest",
             time.unknown_lengths,
             time.iteration_seconds) +
         weak_prices_text(
             "all blocks are taken that may be left by a mask, for flex_attention with masks that "
             "are "
             "not known",
             time.unknown_masks,
             time.iteration_seconds) +
         weak_prices_text(
             "to and from memory of other ranks that is mapped, at the rate of NCCL's rings on "
             "the same link; all ranks come to a barrier together (assumed)",
             time.between_ranks,
             time.iteration_seconds) +
         weak_prices_text(
             "priced as a launch, or a product by its bytes, because no rate is known of them",
             time.not_priced,
             time.iteration_seconds) +
         training_text(estimate.training);
}

}  // namespace sim
