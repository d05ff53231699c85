#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "estimator/base/document.h"
#include "estimator/base/units.h"
#include "estimator/cluster/estimate_cluster.h"
#include "estimator/cluster/rank_classes.h"
#include "estimator/plan/allocator_settings.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/report_output.h"
#include "sim/cli/input/plan_options.h"
#include "sim/cli/input/rank_options.h"
#include "sim/cli/input/table_format_flag.h"
#include "sim/cli/process/output.h"
#include "sim/cli/report/documents.h"
#include "sim/cli/report/plan_report.h"
#include "sim/cli/report/table.h"

namespace sim {
namespace {

using estimator::AllocatorRecord;
using estimator::ExitCode;
using estimator::Plan;
using estimator::RankProfile;

/// What is compared with the plan's own setting, unless --setting says otherwise. "" is PyTorch
/// without settings. A block of 512 MiB is larger than most activations, one of 128 MiB is not.
/// Garbage is collected only where the process has a limit.
constexpr const char* kSettings[] = {
    "",
    "expandable_segments:True",
    "max_split_size_mb:128",
    "max_split_size_mb:512",
    "roundup_power2_divisions:8",
    "garbage_collection_threshold:0.8,per_process_memory_fraction:0.95",
};

struct AllocatorsOptions {
  PlanOptions plan;
  RankOptions ranks;
  std::vector<std::string> settings;
  TableFormatFlag format;
};

/// What the worst rank needs under one setting.
struct Outcome {
  std::string setting;
  bool is_plans = false;
  RankProfile worst;
  estimator::Verdict verdict;
};

std::vector<std::string> settings_to_try(const AllocatorsOptions& options, const Plan& plan) {
  std::vector<std::string> settings = {plan.memory.allocator};
  std::vector<std::string> others = options.settings;
  if (others.empty()) others.assign(std::begin(kSettings), std::end(kSettings));
  for (std::string& setting : others) {
    if (std::find(settings.begin(), settings.end(), setting) == settings.end()) {
      settings.push_back(std::move(setting));
    }
  }
  return settings;
}

Outcome try_setting(Plan plan,
                    const std::string& setting,
                    const RankOptions& ranks,
                    const Environment& environment) {
  std::vector<int64_t> representatives;
  for (const estimator::RankClass& rank_class : estimator::rank_classes(plan)) {
    representatives.push_back(rank_class.representative_rank);
  }
  RankJob job = ranks.job(std::move(representatives), environment);
  job.attribute_memory = false;
  plan.memory.allocator = setting;
  std::vector<RankProfile> profiles = run_ranks(plan, job, environment, standard_error_display());
  Outcome outcome{.setting = setting,
                  .verdict = estimator::estimate_cluster(plan, profiles).verdict};
  for (RankProfile& profile : profiles) {
    if (profile.rank == outcome.verdict.worst_rank) outcome.worst = std::move(profile);
  }
  return outcome;
}

int64_t saved_bytes(const Outcome& outcome, const Outcome& plans) {
  return plans.verdict.peak_bytes - outcome.verdict.peak_bytes;
}

const char* verdict_word(estimator::Fit outcome) {
  switch (outcome) {
    case estimator::Fit::kFits:
      return "yes";
    case estimator::Fit::kTooClose:
      return "too close";
    case estimator::Fit::kDoesNotFit:
      return "no";
  }
  throw std::logic_error("a verdict has no word");
}

TitledTable outcome_table(const std::vector<Outcome>& outcomes) {
  Table table({{"setting", Align::kLeft},
               {"rank"},
               {"allocated"},
               {"reserved"},
               {"inactive split"},
               {"total"},
               {"saves"},
               {"retries"},
               {"fits"}});
  for (const Outcome& outcome : outcomes) {
    const std::string name = outcome.setting.empty() ? "(PyTorch's defaults)" : outcome.setting;
    table.add_row({name + (outcome.is_plans ? " *" : ""),
                   std::to_string(outcome.verdict.worst_rank),
                   gib(outcome.worst.peak.allocated_bytes),
                   gib(outcome.worst.peak.reserved_bytes),
                   gib(outcome.worst.allocator.inactive_split_peak_bytes),
                   gib(outcome.verdict.peak_bytes),
                   gib(saved_bytes(outcome, outcomes.front())),
                   std::to_string(outcome.worst.allocator.retries),
                   verdict_word(outcome.verdict.outcome)});
  }
  return {.title = "The worst rank under each setting, in GiB",
          .table = std::move(table),
          .notes = {"* as it is now; each row was run"}};
}

AllocatorComparison comparison_of(const std::vector<Outcome>& outcomes) {
  AllocatorComparison comparison;
  for (const Outcome& outcome : outcomes) {
    comparison.settings.push_back({.setting = outcome.setting,
                                   .is_plans = outcome.is_plans,
                                   .worst_rank = outcome.verdict.worst_rank,
                                   .allocated_peak_bytes = outcome.worst.peak.allocated_bytes,
                                   .reserved_peak_bytes = outcome.worst.peak.reserved_bytes,
                                   .total_bytes = outcome.verdict.peak_bytes,
                                   .saved_bytes = saved_bytes(outcome, outcomes.front()),
                                   .allocator = outcome.worst.allocator,
                                   .outcome = outcome.verdict.outcome});
  }
  return comparison;
}

void answer(const PlanInput& input,
            const std::vector<Outcome>& outcomes,
            const ReportStyle& style) {
  if (style.format == TableFormat::kJson) {
    return write_to_standard_output(estimator::document_text(comparison_of(outcomes)));
  }
  const bool is_text = style.format == TableFormat::kText;
  write_to_standard_output((is_text ? plan_text(input) + "\n" : "") +
                           outcome_table(outcomes).in(style));
}

ExitCode run_allocators(const AllocatorsOptions& options, const Environment& environment) {
  const ReportStyle style = style_for_output(options.format.format());
  for (const std::string& setting : options.settings) {
    if (auto problem = estimator::find_allocator_problem(setting, "--setting")) {
      throw estimator::UserError(std::move(*problem));
    }
  }
  const PlanInput input = options.plan.resolve(environment);
  std::vector<Outcome> outcomes;
  for (const std::string& setting : settings_to_try(options, input.plan)) {
    outcomes.push_back(try_setting(input.plan, setting, options.ranks, environment));
  }
  outcomes.front().is_plans = true;
  answer(input, outcomes, style);
  return ExitCode::kDone;
}

}  // namespace

Command add_allocators_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand(
      "allocators",
      "what each setting of PyTorch's allocator would save: runs the plan under each");
  const auto options = std::make_shared<AllocatorsOptions>();
  app->add_option("--setting",
                  options->settings,
                  "a value of PYTORCH_CUDA_ALLOC_CONF to compare with the plan's; may be given "
                  "several times")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->group("Execution");
  options->format.add_to(*app);
  options->plan.add_to(*app);
  options->ranks.add_to(*app);
  return {app, [options](const Environment& environment) {
            return run_allocators(*options, environment);
          }};
}

}  // namespace sim
