// The estimate of a cluster, or of the ranks of a program, as a whole.
#pragma once

#include <string>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/program/program_estimate.h"
#include "sim/cli/report/report_style.h"

namespace sim {

/// The text between the verdict and its repetition: rank classes, terms of the worst rank, time,
/// throughput, training, advice and formulas; then rates, assumptions and gaps, or how many there
/// are. Memory is in GiB (2^30). In CSV only the tables.
std::string estimate_text(const estimator::ClusterEstimate& estimate,
                          const ReportStyle& style = {});

/// The verdict, the memory of the ranks that were run, and their step time if it is known.
std::string program_estimate_text(const estimator::ProgramEstimate& estimate,
                                  const ReportStyle& style = {});

}  // namespace sim
