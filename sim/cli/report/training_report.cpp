#include "sim/cli/report/training_report.h"

#include <fmt/format.h>

#include <cmath>

#include "estimator/base/fields.h"
#include "estimator/base/units.h"

namespace sim {
namespace {

using estimator::amount_with_commas;
using estimator::format_duration;
using estimator::with_commas;

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

}  // namespace

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
  return following_tables(training_tables(training), style);
}

}  // namespace sim
