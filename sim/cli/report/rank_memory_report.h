// The memory of ranks, as tables and text: all classes of equal ranks, and what fills the worst.
#pragma once

#include <string>
#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "sim/cli/report/table.h"

namespace sim {

/// Where numbers of live tensors come from, for the source of a column.
inline constexpr const char* kAllocatedSource =
    "simulated: the largest sum of live tensors, in PyTorch's own allocator";

/// The memory of each class of ranks in GiB (2^30), against the GPU's.
TitledTable rank_class_table(const estimator::Verdict& verdict,
                             const std::vector<estimator::RankClassEstimate>& classes);

/// The class of the worst rank, or null.
const estimator::RankClassEstimate* worst_class(
    const estimator::Verdict& verdict, const std::vector<estimator::RankClassEstimate>& classes);

/// The terms of its memory, and what fills its peak if that is known.
std::vector<TitledTable> peak_tables(const estimator::RankClassEstimate& rank);

/// The same, without the column that says where the terms come from unless the style asks for
/// sources.
std::vector<TitledTable> worst_rank_tables(const estimator::RankClassEstimate& worst,
                                           const ReportStyle& style);

/// Where the rank ran out of memory, in a sentence; "" where it did not.
std::string out_of_memory_text(const estimator::RankClassEstimate& row);

/// Where the worst rank ran out of memory, and its tables, after an empty line each; "" where no
/// class has the worst rank.
std::string worst_rank_text(const estimator::Verdict& verdict,
                            const std::vector<estimator::RankClassEstimate>& classes,
                            const ReportStyle& style);

/// Memory of the host for the optimizer; "" where it needs none.
std::string host_memory_text(const estimator::ClusterEstimate& estimate);

}  // namespace sim
