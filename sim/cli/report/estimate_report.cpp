#include "sim/cli/report/estimate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "estimator/cluster/memory_verdict.h"
#include "sim/cli/report/profile_report.h"
#include "sim/cli/report/program_time_text.h"
#include "sim/cli/report/table.h"

namespace sim {
namespace {

using estimator::amount_with_commas;
using estimator::ClusterEstimate;
using estimator::format_duration;
using estimator::format_gib;
using estimator::RankClassEstimate;
using estimator::whole_with_commas;
using estimator::with_commas;

constexpr const char* kAllocated =
    "simulated: the largest sum of live tensors, in PyTorch's own allocator";
constexpr const char* kReserved =
    "simulated: what PyTorch's own allocator takes from the GPU, with what it loses between blocks";
constexpr const char* kContext =
    "assumed, with a band: the CUDA context and the workspaces of CUDA's libraries";
constexpr const char* kStepTime =
    "computed: a replay of the schedule of all stages, with the rates below";
constexpr const char* kCommunicators =
    "assumed, with a band: NCCL's buffers by its channels, for each group of the rank";

std::string offload_text(const estimator::OffloadTime& offload) {
  return fmt::format(
      "of the optimizer {} are the host's: gradients there {}, AdamW {}, parameters back {}",
      format_duration(offload.total_seconds),
      format_duration(offload.to_host_seconds),
      format_duration(offload.update_seconds),
      format_duration(offload.to_device_seconds));
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

/// "the dense bf16 peak": also of a plan whose products are in FP8.
std::string peak_words(const ClusterEstimate& estimate) {
  const estimator::Json::json_pointer dtype("/training/dtype");
  return fmt::format("the dense {} peak", estimate.plan.json().value(dtype, std::string("16-bit")));
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

std::vector<std::string> cost_notes(const std::vector<estimator::TrainingCost>& costs) {
  if (costs.empty()) return {"cost: no price is known; give --price"};
  const auto one = [](const estimator::TrainingCost& cost) {
    return fmt::format("{} US dollars at {:g} for a GPU hour ({}{}{}, {})",
                       amount_with_commas(cost.cost_usd),
                       cost.usd_per_gpu_hour,
                       cost.provider,
                       cost.date.empty() ? "" : ", ",
                       cost.date,
                       estimator::to_string(cost.source));
  };
  if (costs.size() == 1) return {"cost: " + one(costs.front())};
  return {"cost: from " + one(costs.front()), "      to   " + one(costs.back())};
}

std::vector<std::string> training_notes(const estimator::TrainingEstimate& training) {
  const auto tagged = [](const estimator::TaggedNumber& number) {
    return fmt::format(
        "{} ({})", format_duration(number.value), estimator::to_string(number.source));
  };
  std::vector<std::string> notes = {
      fmt::format("a failure every {} ({}: {}), {} to restart;",
                  format_duration(training.seconds_between_failures),
                  estimator::to_string(training.gpu_hours_between_failures.source),
                  training.gpu_hours_between_failures.note,
                  tagged(training.restart_seconds)),
      fmt::format("a checkpoint of {} every {} steps ({})",
                  tagged(training.checkpoint_seconds),
                  with_commas(training.save_interval),
                  estimator::to_string(training.save_interval_source))};
  for (std::string& note : cost_notes(training.costs)) notes.push_back(std::move(note));
  return notes;
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

std::string saved_memory_text(int64_t bytes) {
  const std::string amount = format_gib(std::abs(bytes));
  if (amount == format_gib(0)) return "saves no memory";
  return bytes > 0 ? "saves " + amount : fmt::format("needs {} more", amount);
}

std::string saved_time_text(double seconds, double iteration_seconds) {
  constexpr double kSmallestShare = 5e-4;  // of the iteration: nobody would tell the two apart
  if (std::abs(seconds) < kSmallestShare * iteration_seconds) return "the iteration takes as long";
  return fmt::format("the iteration is {} {}",
                     format_duration(std::abs(seconds)),
                     seconds < 0 ? "longer" : "shorter");
}

TitledTable advice_table(const ClusterEstimate& estimate) {
  Table table({{"", Align::kRight, "", "number"},
               {"priority", Align::kLeft},
               {"change", Align::kLeft},
               {"gain", Align::kLeft},
               {"flags", Align::kLeft}});
  int number = 0;
  for (const estimator::Advice& item : estimate.advice) {
    table.add_row({std::to_string(++number),
                   estimator::to_string(item.priority),
                   item.text,
                   gains_text(item, step_seconds(estimate)),
                   item.flags});
  }
  return {.title = "What would help, each run", .table = std::move(table), .notes = {}};
}

std::string advice_text(const ClusterEstimate& estimate, const ReportStyle& style) {
  if (estimate.advice.empty()) return "";
  if (style.format != TableFormat::kText) return "\n" + advice_table(estimate).in(style);
  std::string text = "\nWhat would help, each run; and what to type for it\n";
  int number = 0;
  for (const estimator::Advice& item : estimate.advice) {
    const std::string gains = gains_text(item, step_seconds(estimate));
    text += fmt::format("  {}. {}: {}{}{}\n     {}\n",
                        ++number,
                        estimator::to_string(item.priority),
                        item.text,
                        gains.empty() ? "" : "; ",
                        gains,
                        item.flags);
  }
  return text;
}

/// Each table after an empty line.
std::string tables_text(const std::vector<TitledTable>& tables, const ReportStyle& style) {
  std::string text;
  for (const TitledTable& table : tables) text += "\n" + table.in(style);
  return text;
}

/// The terms of the worst rank's memory; the notes in the last column say where they come from.
std::vector<TitledTable> worst_rank_tables(const RankClassEstimate& worst,
                                           const ReportStyle& style) {
  std::vector<TitledTable> tables = peak_tables(worst);
  if (!style.sources) tables.front().table = tables.front().table.without_last_column();
  return tables;
}

std::string worst_rank_text(const estimator::Verdict& verdict,
                            const std::vector<RankClassEstimate>& classes,
                            const ReportStyle& style) {
  const RankClassEstimate* const worst = worst_class(verdict, classes);
  if (worst == nullptr) return "";
  const std::string out_of_memory = out_of_memory_text(*worst);
  const std::vector<TitledTable> tables = worst_rank_tables(*worst, style);
  return (out_of_memory.empty() ? "" : "\n" + out_of_memory + "\n") + tables_text(tables, style);
}

std::string list_text(const char* title, const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string text = fmt::format("\n{}\n", title);
  for (const std::string& item : items) text += "  - " + item + "\n";
  return text;
}

/// Rates, assumptions and gaps, or how many there are.
std::string sources_text(const std::vector<estimator::RateTerm>& rates,
                         const std::vector<std::string>& assumptions,
                         const std::vector<std::string>& not_modelled,
                         const ReportStyle& style) {
  if (style.sources) {
    return tables_text(rate_tables(rates), style) + list_text("Assumed", assumptions) +
           list_text("Not modelled", not_modelled);
  }
  return fmt::format(
      "\n--sources shows where these numbers come from: {} rates, {} assumptions, and {} things "
      "that "
      "are not modelled\n",
      rates.size(),
      assumptions.size(),
      not_modelled.size());
}

}  // namespace

TitledTable rank_class_table(const estimator::Verdict& verdict,
                             const std::vector<RankClassEstimate>& classes) {
  Table table({{"rank", Align::kRight, "the rank that was run"},
               {"ranks like it", Align::kRight, "computed: ranks that do the same work"},
               {"stages"},
               {"parameters", Align::kRight, "simulated: counted in the shard that was built"},
               {"allocated", Align::kRight, kAllocated},
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
  TitledTable titled{.title = fmt::format("One iteration: {} ({})",
                                          format_duration(time.iteration_seconds),
                                          estimator::to_string(time.source)),
                     .table = std::move(table),
                     .notes = {}};
  if (time.offload) titled.notes.push_back(offload_text(*time.offload));
  return titled;
}

std::vector<TitledTable> textbook_tables(const ClusterEstimate& estimate) {
  if (estimate.textbook.empty()) return {};
  Table table({{"by the book", Align::kLeft},
               {"GiB", Align::kRight, "computed: the formula"},
               {"executed", Align::kRight, kAllocated},
               {"difference", Align::kRight, "executed over the formula"},
               {"formula", Align::kLeft},
               {"source", Align::kLeft}});
  for (const estimator::TextbookTerm& term : estimate.textbook) {
    const bool is_known = term.executed_bytes && term.bytes > 0;
    const double executed = static_cast<double>(term.executed_bytes.value_or(0));
    const double share = is_known ? executed / static_cast<double>(term.bytes) - 1 : 0;
    table.add_row({term.name,
                   gib(term.bytes),
                   term.executed_bytes ? gib(*term.executed_bytes) : "-",
                   is_known ? fmt::format("{:+.1f} %", 100 * share) : "-",
                   term.formula,
                   term.source});
  }
  return {
      {.title = fmt::format("By the book: closed formulas for rank {}, beside what was executed",
                            estimate.verdict.worst_rank),
       .table = std::move(table),
       .notes = {
           "P, l, h, a, v: parameters, layers, width, heads, vocabulary of the model; s, b: tokens "
           "and samples of a micro-batch; t, p: tensor and pipeline ranks; d: data ranks that "
           "share one copy (data / replicas)",
           "the layer of the papers is GPT's, with an MLP of 4 h, dropout and 16 bits; stages are "
           "even"}}};
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

std::string gains_text(const estimator::Advice& advice, double iteration_seconds) {
  std::string text;
  if (advice.gain_bytes) text = saved_memory_text(*advice.gain_bytes);
  if (advice.gain_seconds) {
    text += (text.empty() ? "" : "; ") + saved_time_text(*advice.gain_seconds, iteration_seconds);
  }
  return text;
}

std::string verdict_text(const estimator::Verdict& verdict) {
  return fmt::format("{}: {}\n", estimator::fit_words(verdict.outcome), verdict.reason);
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

std::vector<TitledTable> training_tables(
    const std::optional<estimator::TrainingEstimate>& training) {
  if (!training || !std::isfinite(training->seconds)) return {};
  Table table({{"part", Align::kLeft},
               {"time", Align::kRight, "computed: steps x iteration, and failures as below"},
               {"share"}});
  const auto add = [&](const char* part, double seconds) {
    const double share = training->seconds > 0 ? 100 * seconds / training->seconds : 0;
    table.add_row({part, format_duration(seconds), fmt::format("{:.1f} %", share)});
  };
  add("training", training->seconds_without_failures);
  add("checkpoints", training->lost_seconds.checkpoints);
  add("restarts", training->lost_seconds.restarts);
  add("work done again", training->lost_seconds.repeated_work);
  return {{.title = fmt::format("Training: {} steps, {} expected, goodput {:.1f} %; {} GPU hours",
                                with_commas(training->steps),
                                format_duration(training->seconds),
                                100 * training->goodput,
                                amount_with_commas(training->gpu_hours)),
           .table = std::move(table),
           .notes = training_notes(*training)}};
}

std::string training_text(const std::optional<estimator::TrainingEstimate>& training,
                          const ReportStyle& style) {
  return tables_text(training_tables(training), style);
}

std::string health_text(const estimator::Verdict& verdict, const estimator::MemoryHealth& health) {
  if (verdict.outcome == estimator::Fit::kDoesNotFit) return "";
  const double target = 100 * health.target_share;
  const bool is_healthy = health.level == estimator::HealthLevel::kHealthy;
  const bool is_above = health.level == estimator::HealthLevel::kAboveTarget;
  return fmt::format("health: {:.1f} % of the GPU's memory at the peak, {} ({})\n",
                     100 * health.used_share,
                     is_healthy ? fmt::format("within the target of {:.0f} %", target)
                     : is_above ? fmt::format("above the target of {:.0f} %", target)
                                : fmt::format("{}: above the target of {:.0f} %",
                                              estimator::to_string(health.level),
                                              target),
                     health.thresholds);
}

std::string lacking_gpus_text(const ClusterEstimate& estimate,
                              int64_t world_size,
                              bool can_offload,
                              const std::string& search) {
  if (!estimate.lacks_gpus(world_size)) return "";
  const estimator::WholeState& state = *estimate.whole_state;
  const std::string text = fmt::format(
      "Parameters, gradients and optimizer state alone need {} ({:.1f} bytes for each of {} "
      "parameters, as the executed ranks hold them), and a GPU has room for {}: at least {} GPUs "
      "of this kind{}, whose ranks share all of it (tensor and pipeline ranks, ZeRO).\n",
      format_gib(state.bytes()),
      static_cast<double>(state.bytes()) / static_cast<double>(state.parameters),
      with_commas(state.parameters),
      format_gib(state.usable_bytes),
      with_commas(state.fewest_gpus),
      can_offload
          ? fmt::format(" ({} with optimizer offload)", with_commas(state.fewest_gpus_offloaded))
          : "");
  return search.empty() ? text : text + "A layout is found by\n    " + search + "\n";
}

namespace {

/// All tables of the report; each is one of estimate_text().
std::vector<TitledTable> estimate_tables(const ClusterEstimate& estimate,
                                         const ReportStyle& style) {
  std::vector<TitledTable> tables = {rank_class_table(estimate.verdict, estimate.rank_classes)};
  const auto add = [&](std::vector<TitledTable> more) {
    for (TitledTable& table : more) tables.push_back(std::move(table));
  };
  if (const auto* worst = worst_class(estimate.verdict, estimate.rank_classes)) {
    add(worst_rank_tables(*worst, style));
  }
  tables.push_back(time_table(estimate.time));
  add(training_tables(estimate.training));
  if (!estimate.advice.empty()) tables.push_back(advice_table(estimate));
  add(textbook_tables(estimate));
  if (style.sources) add(rate_tables(estimate.rates));
  return tables;
}

}  // namespace

std::string estimate_text(const ClusterEstimate& estimate, const ReportStyle& style) {
  if (style.format == TableFormat::kCsv) return tables_in(estimate_tables(estimate, style), style);
  return rank_class_table(estimate.verdict, estimate.rank_classes).in(style) +
         worst_rank_text(estimate.verdict, estimate.rank_classes, style) +
         host_memory_text(estimate) + "\n" + time_table(estimate.time).in(style) +
         measured_step_text(estimate.measured_step) + throughput_text(estimate) +
         rank_step_text(estimate) + training_text(estimate.training, style) +
         advice_text(estimate, style) +
         (estimate.verdict.fits() && estimate.advice.empty()
              ? "\n`--advice always` tries what would save memory or time, though the plan fits\n"
              : "") +
         tables_text(textbook_tables(estimate), style) +
         sources_text(estimate.rates, estimate.assumptions, estimate.not_modelled, style);
}

std::string program_estimate_text(const estimator::ProgramEstimate& estimate,
                                  const ReportStyle& style) {
  if (style.format == TableFormat::kCsv) {
    return rank_class_table(estimate.verdict, estimate.ranks).in(style) +
           (estimate.time ? "\n" + tables_in(program_time_tables(*estimate.time), style) : "");
  }
  return verdict_text(estimate.verdict) + "\n" +
         rank_class_table(estimate.verdict, estimate.ranks).in(style) +
         worst_rank_text(estimate.verdict, estimate.ranks, style) +
         (estimate.time ? program_time_text(estimate) : "") +
         sources_text(estimate.time ? estimate.time->rates : std::vector<estimator::RateTerm>{},
                      estimate.assumptions,
                      estimate.not_modelled,
                      style);
}

}  // namespace sim
