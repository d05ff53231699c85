#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "estimator/base/contains.h"
#include "estimator/base/document.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/cluster/rank_step.h"
#include "estimator/cluster/roofline.h"
#include "estimator/cluster/textbook.h"
#include "estimator/step/chrome_trace.h"
#include "estimator/what_if/advice.h"
#include "estimator/what_if/max_micro_batch.h"
#include "estimator/what_if/max_sequence.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/html_flag.h"
#include "sim/cli/commands/program_trace_output.h"
#include "sim/cli/commands/report_output.h"
#include "sim/cli/commands/written_plan.h"
#include "sim/cli/input/offered_words.h"
#include "sim/cli/input/program_flags.h"
#include "sim/cli/input/table_format_flag.h"
#include "sim/cli/input/verdict_gate.h"
#include "sim/cli/jobs/cluster_job.h"
#include "sim/cli/page/estimate_page.h"
#include "sim/cli/page/program_page.h"
#include "sim/cli/process/output.h"
#include "sim/cli/process/terminal.h"
#include "sim/cli/report/estimate_report.h"
#include "sim/cli/report/plan_report.h"
#include "sim/cli/report/program_report.h"
#include "sim/cli/report/program_timeline_text.h"
#include "sim/cli/report/rank_memory_report.h"
#include "sim/cli/report/step_report.h"
#include "sim/cli/report/timeline_text.h"
#include "sim/cli/report/verdict_report.h"
#include "sim/cli/values/strict_number.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::ExitCode;

struct EstimateOptions {
  ClusterJob job;
  ProgramFlags program;
  MeasuredStepFlag measured_step;
  VerdictGate gate;
  std::string output;
  std::string keep_profiles;
  std::string trace;
  HtmlFlag html;
  bool timeline = false;
  TableFormatFlag format;
  bool sources = false;
  bool formulas = false;
  std::string decode_tokens;
  bool exit_zero = false;
  std::string advice = "auto";
  bool no_advice = false;
  bool max_micro_batch = false;
  bool max_sequence = false;
  std::string write_plan;
  std::string apply;

  bool wants_formulas() const { return formulas || !decode_tokens.empty(); }
};

ReportStyle style_of(const EstimateOptions& options) {
  ReportStyle style = style_for_output(options.format.format());
  style.sources = options.sources;
  return style;
}

bool is_json(const EstimateOptions& options) {
  return options.format.format() == TableFormat::kJson;
}

/// A picture of text stands in text alone.
void check_timeline(const EstimateOptions& options) {
  if (!options.timeline || options.format.format() == TableFormat::kText) return;
  throw estimator::UserError({.what = "a timeline is drawn in text",
                              .where = "--timeline with --format or --json",
                              .help = "leave out one of them; --trace FILE writes the timeline"});
}

std::string verdict_lines(const estimator::Verdict& verdict, const EstimateOptions& options) {
  return verdict_text(verdict) + health_text(verdict, options.gate.health(verdict));
}

ExitCode exit_code_of(const estimator::Verdict& verdict, const EstimateOptions& options) {
  return options.exit_zero ? ExitCode::kDone : options.gate.exit_code(verdict);
}

void write_profiles(const std::string& folder,
                    const std::vector<estimator::RankProfile>& profiles) {
  if (folder.empty()) return;
  estimator::make_folder(folder);
  for (const estimator::RankProfile& profile : profiles) {
    const fs::path path = fs::path(folder) / estimator::profile_file_name(profile.rank);
    estimator::write_file_whole(path.string(), estimator::document_text(profile));
  }
}

constexpr std::string_view kAdviceTimes[] = {"auto", "always", "never"};

/// Whether to run what --advice asks for. Where the state alone needs more GPUs no change helps.
bool wants_advice(const EstimateOptions& options, const ClusterResult& result) {
  if (options.no_advice || options.advice == "never" || !options.job.runs_ranks()) return false;
  if (options.advice == "always") return true;
  return !result.estimate.verdict.fits() &&
         !result.estimate.lacks_gpus(result.input.plan.world_size());
}

void check_advice(const EstimateOptions& options) {
  const bool known = estimator::contains(kAdviceTimes, options.advice);
  if (known && (!options.no_advice || options.advice != "always")) return;
  throw estimator::UserError(
      {.what = known ? "two flags contradict each other" : "unknown time for advice",
       .where = fmt::format(
           "--advice = \"{}\"{}", options.advice, options.no_advice ? " and --no-advice" : ""),
       .help = "use auto, always or never"});
}

/// The advice of --apply; without it the first of a plan that does not surely fit, else null.
const estimator::Advice* chosen_advice(const EstimateOptions& options,
                                       const estimator::ClusterEstimate& estimate) {
  const auto count = static_cast<int64_t>(estimate.advice.size());
  if (options.apply.empty()) {
    const bool is_wanted = !estimate.verdict.fits() && count > 0;
    return is_wanted ? &estimate.advice.front() : nullptr;
  }
  const int64_t number = parse_whole_number(options.apply, "--apply");
  if (number < 1 || number > count) {
    throw estimator::UserError(
        {.what = "there is no such advice",
         .where = fmt::format("--apply = {}, {} are given", number, count),
         .help = "use a number of the list below \"What would help\"; --advice always asks for it "
                 "where the plan fits"});
  }
  return &estimate.advice[static_cast<std::size_t>(number - 1)];
}

/// What was said, with the chosen advice, as a plan file.
void write_plan(const EstimateOptions& options, const ClusterResult& result) {
  if (options.write_plan.empty()) return;
  estimator::PlanSpec spec = result.input.spec;
  const estimator::Advice* const advice = chosen_advice(options, result.estimate);
  if (advice != nullptr) spec = spec.with(advice->edits);
  const estimator::Json tree = written_plan(spec, options.job.calibration_file());
  estimator::write_file_whole(options.write_plan, tree.dump(2) + "\n");
}

/// Writes the answer to the question for a largest size; `found` says whether there is one.
template <class Answer>
ExitCode write_largest(const EstimateOptions& options,
                       const Answer& answer,
                       const std::string& text,
                       bool found) {
  const std::string json = estimator::document_text(answer);
  if (!options.output.empty()) estimator::write_file_whole(options.output, json);
  write_to_standard_output(is_json(options) ? json : text);
  return found || options.exit_zero ? ExitCode::kDone : ExitCode::kVerdictIsNo;
}

ExitCode answer_largest(const EstimateOptions& options, const Environment& environment) {
  const PlanInput input = options.job.resolve(environment);
  const estimator::PlanRunner runner = options.job.runner(input.plan, environment);
  if (options.max_sequence) {
    const estimator::MaxSequence answer = estimator::find_max_sequence(input.spec, runner);
    return write_largest(
        options, answer, estimator::max_sequence_text(answer), answer.sequence_length.has_value());
  }
  const estimator::MaxMicroBatch answer = estimator::find_max_micro_batch(input.spec, runner);
  return write_largest(options,
                       answer,
                       estimator::max_micro_batch_text(answer),
                       answer.micro_batch_size.has_value());
}

/// What is asked of a plan, but has no answer for a program.
void refuse_flags_of_plans(const EstimateOptions& options) {
  if (!options.keep_profiles.empty()) refuse_flag_of_plans("--keep-profiles");
  if (options.advice == "always") refuse_flag_of_plans("--advice always");
  if (!options.write_plan.empty()) refuse_flag_of_plans("--write-plan");
  if (options.wants_formulas()) refuse_flag_of_plans("--formulas");
  if (options.max_micro_batch) refuse_flag_of_plans("--max-micro-batch");
  if (options.max_sequence) refuse_flag_of_plans("--max-sequence");
}

/// What is asked of a program, but has no answer for a plan.
void refuse_flags_of_programs(const EstimateOptions& options) {
  for (const std::string& flag : options.program.given()) {
    throw estimator::UserError({.what = "the flag is for programs only",
                                .where = fmt::format("{} with a plan", flag),
                                .help = fmt::format("leave out {}", flag)});
  }
}

[[noreturn]] void refuse_measured_step() {
  throw estimator::UserError({.what = "a measured step says nothing about memory",
                              .where = "--measured-step with --max-micro-batch or --max-sequence",
                              .help = "leave out --measured-step"});
}

/// The memory and step time of a program's ranks, from their profiles alone.
ExitCode estimate_program(const EstimateOptions& options,
                          const std::vector<estimator::RankProfile>& profiles,
                          const Environment& environment) {
  refuse_flags_of_plans(options);
  const auto calibration = options.job.calibration_of(profiles);
  const estimator::Calibration* const rates = calibration ? &*calibration : nullptr;
  estimator::ProgramRun run = options.program.run(options.job.plan_flags());
  run.measured_step_seconds = options.measured_step.seconds();
  const estimator::ProgramEstimate estimate = estimator::estimate_program(profiles, rates, run);
  std::optional<estimator::ProgramReplay> replayed;
  const auto replay = [&]() -> const estimator::ProgramReplay& {
    if (!replayed) replayed.emplace(estimator::replay_program(profiles, rates, run));
    return *replayed;
  };
  if (!options.trace.empty()) write_program_trace(options.trace, replay());
  const std::string json = estimator::document_text(estimate);
  if (!options.output.empty()) estimator::write_file_whole(options.output, json);
  if (is_json(options)) {
    write_to_standard_output(json);
  } else if (options.format.format() != TableFormat::kText) {
    write_to_standard_output(program_estimate_text(estimate, style_of(options)));
  } else {
    write_report(program_estimate_text(estimate, style_of(options)) +
                     (options.timeline ? program_timeline_text(replay(), output_columns()) : "") +
                     "\n" + verdict_text(estimate.verdict),
                 environment);
  }
  if (options.html.is_given()) {
    const Page page = program_page(profiles,
                                   {.command = "onerank estimate",
                                    .estimate = estimate,
                                    .replay = estimate.time ? &replay() : nullptr,
                                    .detail = std::nullopt});
    options.html.write(page);
  }
  return exit_code_of(estimate.verdict, options);
}

/// The profile of the worst rank, or null.
const estimator::RankProfile* worst_profile(const ClusterResult& result) {
  const auto worst = std::find_if(
      result.profiles.begin(), result.profiles.end(), [&](const estimator::RankProfile& profile) {
        return profile.rank == result.estimate.verdict.worst_rank;
      });
  return worst == result.profiles.end() ? nullptr : &*worst;
}

std::optional<int64_t> decode_tokens_of(const EstimateOptions& options) {
  if (options.decode_tokens.empty()) return std::nullopt;
  return parse_positive_number(options.decode_tokens, "--decode-tokens");
}

/// What the report says of the worst rank alone.
void add_worst_rank(const EstimateOptions& options,
                    std::optional<int64_t> decode_tokens,
                    const estimator::StepTimeline& timeline,
                    ClusterResult& result) {
  const auto* const rank = worst_class(result.estimate.verdict, result.estimate.rank_classes);
  const auto* const profile = worst_profile(result);
  if (rank == nullptr || profile == nullptr) return;
  const estimator::Plan& plan = result.input.plan;
  result.estimate.worst_rank_step =
      estimator::rank_step(plan, *rank, *profile, timeline, step_seconds(result.estimate));
  if (!options.wants_formulas()) return;
  result.estimate.textbook = estimator::textbook_terms(plan, *rank, *profile, decode_tokens);
}

void write_page(const ClusterJob& job,
                const ClusterResult& result,
                const estimator::StepTimeline& timeline,
                const HtmlFlag& html,
                const Environment& environment) {
  if (!html.is_given()) return;
  const EstimateParts parts{
      .worst_rank = job.worst_rank_detail(result, environment),
      .worst_profile = worst_profile(result),
      .timeline = timeline,
      .roofline = estimator::roofline_of(
          result.input.plan, result.profiles, result.estimate, result.rates())};
  html.write(estimate_page(result.input, result.estimate, parts));
}

std::string report_of(const EstimateOptions& options,
                      const ClusterResult& result,
                      const estimator::StepTimeline& timeline) {
  const ReportStyle style = style_of(options);
  std::string report = estimate_text(result.estimate, style);
  if (style.format == TableFormat::kCsv) return report;
  const std::string verdict =
      verdict_lines(result.estimate.verdict, options) + result.search_instead();
  const std::string plan = plan_text(result.input);
  if (style.format == TableFormat::kMarkdown) {
    return fmt::format("## {}\n```\n{}```\n\n{}", verdict, plan, report);
  }
  const std::string picture = options.timeline ? timeline_text(timeline, output_columns()) : "";
  return verdict + "\n" + plan + "\n" + report + picture + "\n" + verdict;
}

ExitCode run_estimate(const EstimateOptions& options, const Environment& environment) {
  check_advice(options);
  check_timeline(options);
  options.gate.check();
  check_writable_document(options.output, "--output");
  check_writable_document(options.write_plan, "--write-plan");
  if (!options.apply.empty() && options.write_plan.empty()) {
    throw estimator::UserError({.what = "advice is applied to a plan that is written",
                                .where = "--apply without --write-plan",
                                .help = "give --write-plan FILE, too"});
  }
  check_writable(options.trace, "--trace");
  options.html.check();
  check_writable_folder(options.keep_profiles, "--keep-profiles");
  const auto measured_seconds = options.measured_step.seconds();
  const auto decode_tokens = decode_tokens_of(options);
  const auto of_a_program = options.job.program_profiles(keys_of_programs());
  if (!of_a_program.empty()) {
    return estimate_program(options, of_a_program, environment);
  }
  refuse_flags_of_programs(options);
  if (options.max_micro_batch || options.max_sequence) {
    if (measured_seconds) refuse_measured_step();
    return answer_largest(options, environment);
  }
  ClusterResult result = options.job.run(environment);
  write_profiles(options.keep_profiles, result.profiles);
  if (wants_advice(options, result)) {
    result.estimate.advice = estimator::advise(
        result.input.spec, result.estimate, options.job.runner(result.input.plan, environment));
  }
  if (measured_seconds) {
    estimator::use_measured_step(*measured_seconds, result.input.plan, result.estimate);
  }
  const estimator::StepTimeline timeline = result.timeline();
  add_worst_rank(options, decode_tokens, timeline, result);
  write_plan(options, result);
  const std::string json = estimator::document_text(result.estimate);
  if (!options.output.empty()) estimator::write_file_whole(options.output, json);
  if (!options.trace.empty()) {
    estimator::write_file_whole(options.trace, estimator::chrome_trace(timeline));
  }
  write_page(options.job, result, timeline, options.html, environment);
  if (is_json(options)) {
    write_to_standard_error(input_lines(result.input));
    write_to_standard_output(json);
  } else {
    write_report(report_of(options, result, timeline), environment);
  }
  return exit_code_of(result.estimate.verdict, options);
}

}  // namespace

Command add_estimate_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("estimate", "memory, time and cost of the whole cluster");
  const auto options = std::make_shared<EstimateOptions>();
  options->format.add_to(*app);
  app->add_option("--output", options->output, "write the estimate as JSON")
      ->type_name("FILE")
      ->group("Output");
  app->add_option("--keep-profiles", options->keep_profiles, "write the rank profiles there")
      ->type_name("DIR")
      ->group("Output");
  app->add_option("--trace", options->trace, "write the step as a Chrome trace, for Perfetto")
      ->type_name("FILE")
      ->group("Output");
  options->html.add_to(
      *app, "write the report as one HTML file: tables, and pictures of memory and step");
  app->add_flag("--timeline",
                options->timeline,
                "draw the step: a line for each pipeline stage, or of a program for each stream")
      ->group("Output");
  app->add_flag("--sources",
                options->sources,
                "where the numbers come from: rates, assumptions, and what is not modelled")
      ->group("Output");
  app->add_flag("--formulas",
                options->formulas,
                "by the book: the formulas of papers for weights, gradients, optimizer, "
                "activations and logits, beside what was executed, and the difference")
      ->group("Output");
  app->add_option("--decode-tokens",
                  options->decode_tokens,
                  "as --formulas, with the keys and values of so many decoded tokens: 8k")
      ->type_name("N")
      ->group("Output");
  app->add_flag("--exit-zero", options->exit_zero, "exit with 0 even if the plan does not fit")
      ->group("Output");
  app->add_flag("--max-micro-batch",
                options->max_micro_batch,
                "only find and print the largest micro-batch that surely fits (and divides the "
                "global batch, if one is given)")
      ->group("Output");
  app->add_flag("--max-sequence",
                options->max_sequence,
                "only find and print the longest sequence that surely fits")
      ->excludes("--max-micro-batch")
      ->group("Output");
  CLI::Option* advice = app->add_option(
      "--advice",
      options->advice,
      "try changes of the plan: auto (if it does not surely fit), always (also if it "
      "fits, to save memory or time; --advice without a word means it) or never");
  offer(advice->type_name("WHEN")->capture_default_str()->group("Output"),
        {std::begin(kAdviceTimes), std::end(kAdviceTimes)});
  app->add_flag("--no-advice", options->no_advice, "the same as --advice never")->group("Output");
  app->add_option("--write-plan",
                  options->write_plan,
                  "write the plan with the advice of --apply, or the first where it does not fit")
      ->type_name("FILE")
      ->group("Output");
  app->add_option("--apply", options->apply, "the advice that --write-plan applies, by its number")
      ->type_name("N")
      ->group("Output");
  options->gate.add_to(*app);
  options->job.add_to(*app);
  options->program.add_to(*app);
  options->measured_step.add_to(*app);
  return {app, [options](const Environment& environment) {
            return run_estimate(*options, environment);
          }};
}

}  // namespace sim
