// A cluster estimate as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/cluster/memory_health.h"
#include "estimator/cluster/program_estimate.h"
#include "sim/cli/report/table.h"

namespace sim {

/// The memory of each class of ranks in GiB (2^30), against the GPU's.
TitledTable rank_class_table(const estimator::Verdict& verdict,
                             const std::vector<estimator::RankClassEstimate>& classes);

/// The class of the worst rank, or null.
const estimator::RankClassEstimate* worst_class(
    const estimator::Verdict& verdict, const std::vector<estimator::RankClassEstimate>& classes);

/// The terms of its memory, and what fills its peak if that is known.
std::vector<TitledTable> peak_tables(const estimator::RankClassEstimate& rank);

/// The parts of one iteration.
TitledTable time_table(const estimator::StepTime& time);

/// Where the time of the training goes; none without a training.
std::vector<TitledTable> training_tables(
    const std::optional<estimator::TrainingEstimate>& training);

/// Closed formulas of the literature beside what was executed; none unless they were asked for.
std::vector<TitledTable> textbook_tables(const estimator::ClusterEstimate& estimate);

/// How fast the GPU was taken to be; none if nothing was priced.
std::vector<TitledTable> rate_tables(const std::vector<estimator::RateTerm>& rates);

/// Seconds of one iteration: measured if the user gave them, else estimated.
double step_seconds(const estimator::ClusterEstimate& estimate);

/// What a change saves, "saves 1.20 GiB; the iteration is 1.79 s shorter"; "" if that is not known.
std::string gains_text(const estimator::Advice& advice, double iteration_seconds);

/// Where the rank ran out of memory, in a sentence; "" where it did not.
std::string out_of_memory_text(const estimator::RankClassEstimate& row);

/// "fits: REASON", "too close to call: REASON" or "does not fit: REASON".
std::string verdict_text(const estimator::Verdict& verdict);

/// Why no layout of these GPUs fits, and how many hold the state of the model at least; "" where
/// that is not why. `search` is the command that finds a layout.
std::string lacking_gpus_text(const estimator::ClusterEstimate& estimate,
                              int64_t world_size,
                              bool can_offload,
                              const std::string& search);

/// "health: 73.6 % of the GPU's memory at the peak, within the target of 90 % (balanced)"; "" for a
/// plan that does not fit, whose verdict says how much is missing.
std::string health_text(const estimator::Verdict& verdict, const estimator::MemoryHealth& health);

/// The text between the verdict and its repetition: rank classes, terms of the worst rank, time,
/// throughput, training, advice and formulas; then rates, assumptions and gaps, or how many there
/// are. Memory is in GiB (2^30). In CSV only the tables.
std::string estimate_text(const estimator::ClusterEstimate& estimate,
                          const ReportStyle& style = {});

/// The verdict, the memory of the ranks that were run, and their step time if it is known.
std::string program_estimate_text(const estimator::ProgramEstimate& estimate,
                                  const ReportStyle& style = {});

/// Time, goodput, failures and cost of the whole training; "" without one.
std::string training_text(const std::optional<estimator::TrainingEstimate>& training,
                          const ReportStyle& style = {});

/// What a measured step changes; "" without one.
std::string measured_step_text(const std::optional<estimator::MeasuredStep>& measured);

}  // namespace sim
