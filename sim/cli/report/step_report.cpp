#include "sim/cli/report/step_report.h"

#include <fmt/format.h>

#include <cmath>

#include "estimator/base/fields.h"
#include "estimator/base/units.h"

namespace sim {
namespace {

using estimator::ClusterEstimate;
using estimator::format_duration;
using estimator::format_gib;
using estimator::whole_with_commas;

constexpr const char* kStepTime =
    "computed: a replay of the schedule of all stages, with the rates below";

std::string offload_text(const estimator::OffloadTime& offload) {
  return fmt::format(
      "of the optimizer {} are the host's: gradients there {}, AdamW {}, parameters back {}",
      format_duration(offload.total_seconds),
      format_duration(offload.to_host_seconds),
      format_duration(offload.update_seconds),
      format_duration(offload.to_device_seconds));
}

/// "the dense bf16 peak": also of a plan whose products are in FP8.
std::string peak_words(const ClusterEstimate& estimate) {
  const estimator::Json::json_pointer dtype("/training/dtype");
  return fmt::format("the dense {} peak", estimate.plan.json().value(dtype, std::string("16-bit")));
}

std::string rate_text(const estimator::RateTerm& rate) {
  constexpr double kTera = 1e12;
  constexpr double kGiga = 1e9;
  if (rate.unit == "seconds") return format_duration(rate.value);
  if (rate.unit == "parameters_per_second") return fmt::format("{:.1f} G/s", rate.value / kGiga);
  if (rate.unit == "bytes_per_second" && rate.value < kTera / 10) {
    return fmt::format("{:.1f} GB/s", rate.value / kGiga);
  }
  return fmt::format("{:.{}f} {}",
                     rate.value / kTera,
                     rate.unit == "bytes_per_second" ? 2 : 0,
                     rate.unit == "bytes_per_second" ? "TB/s" : "TFLOP/s");
}

/// Stages that wait for each other have parts of their own.
std::string whose_parts(const estimator::StepTime& time) {
  if (time.bubble_seconds == 0) return "";
  return fmt::format("; its parts on stage {}, which is busy longest", time.stage);
}

}  // namespace

TitledTable time_table(const estimator::StepTime& time) {
  Table table({{"part", Align::kLeft},
               {"time", Align::kRight, kStepTime},
               {"share", Align::kRight, "of the iteration"}});
  for (const estimator::StepPart& part : step_parts(time)) {
    if (part.seconds == 0) continue;
    const double share =
        time.iteration_seconds > 0 ? 100 * part.seconds / time.iteration_seconds : 0;
    table.add_row({part.name, format_duration(part.seconds), fmt::format("{:.1f} %", share)});
  }
  TitledTable titled{.title = fmt::format("One iteration: {} ({}){}",
                                          format_duration(time.iteration_seconds),
                                          estimator::to_string(time.source),
                                          whose_parts(time)),
                     .table = std::move(table),
                     .notes = {}};
  if (time.offload) titled.notes.push_back(offload_text(*time.offload));
  return titled;
}

std::vector<TitledTable> rate_tables(const std::vector<estimator::RateTerm>& rates) {
  if (rates.empty()) return {};
  Table table({{"rate", Align::kLeft},
               {"", Align::kRight, "", "value"},
               {"source", Align::kLeft},
               {"", Align::kLeft, "", "note"}});
  for (const estimator::RateTerm& rate : rates) {
    table.add_row({rate.name, rate_text(rate), estimator::to_string(rate.source), rate.note});
  }
  return {{.title = "How fast the GPU was taken to be", .table = std::move(table), .notes = {}}};
}

double step_seconds(const ClusterEstimate& estimate) {
  return estimate.measured_step ? estimate.measured_step->seconds : estimate.time.iteration_seconds;
}

std::string measured_step_text(const std::optional<estimator::MeasuredStep>& measured) {
  if (!measured) return "";
  return fmt::format(
      "\nMeasured: {} for one iteration (given), {:.3f} x the {} above; throughput, training, cost "
      "and what advice\n  saves are computed with this factor, the parts of the iteration are "
      "not\n",
      format_duration(measured->seconds),
      measured->factor,
      format_duration(measured->estimated_seconds));
}

std::string throughput_text(const ClusterEstimate& estimate) {
  const estimator::Throughput& throughput = estimate.throughput;
  constexpr double kTera = 1e12;
  if (!std::isfinite(throughput.tokens_per_second)) return "";  // nothing was priced
  return fmt::format(
      "\nThroughput: {} tokens/s, {:.1f} for each GPU; {:.1f} model TFLOP/s for each GPU, MFU "
      "{:.1f} %, HFU {:.1f} %\n  of {}; Megatron-LM's count, causal attention half "
      "(all of it, as PaLM: MFU {:.1f} %)\n",
      whole_with_commas(throughput.tokens_per_second),
      throughput.tokens_per_second_per_gpu,
      throughput.model_flops_per_second_per_gpu / kTera,
      100 * throughput.mfu,
      100 * throughput.hfu,
      peak_words(estimate),
      100 * throughput.mfu_full_attention);
}

std::string board_words(const estimator::BoardUse& board) {
  return fmt::format("  board power {:.0f} of {:.0f} W (simulated): products and attention",
                     board.watts,
                     board.limit_watts);
}

std::string board_text(const ClusterEstimate& estimate) {
  const auto& classes = estimate.rank_classes;
  const auto slowest =
      std::min_element(classes.begin(), classes.end(), [](const auto& a, const auto& b) {
        return a.board.speed < b.board.speed;
      });
  if (slowest == classes.end() || slowest->board.speed == 1) return "";
  return fmt::format("{} of rank {} at {:.0f} % of their rates\n",
                     board_words(slowest->board),
                     slowest->representative_rank,
                     100 * slowest->board.speed);
}

std::string rank_step_text(const ClusterEstimate& estimate) {
  if (!estimate.worst_rank_step) return "";
  constexpr double kTera = 1e12;
  const estimator::RankStep& step = *estimate.worst_rank_step;
  std::string text = fmt::format(
      "Rank {} in a step: {:.4g} TFLOP on {:.4g} TB, {:.0f} FLOP/byte; {:.1f} TFLOP/s and {:.2f} "
      "TB/s over the iteration\n  {:.2f} MiB at the allocated peak for each token of a "
      "micro-batch",
      step.rank,
      step.flops / kTera,
      step.moved_bytes / kTera,
      step.flops_per_byte,
      step.flops_per_second / kTera,
      step.moved_bytes_per_second / kTera,
      step.peak_bytes_per_token / static_cast<double>(estimator::kMiB));
  if (step.mean_allocated_bytes) {
    text += fmt::format("; {} on average over the step", format_gib(*step.mean_allocated_bytes));
  }
  return text + "\n";
}

}  // namespace sim
