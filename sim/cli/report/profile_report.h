// A rank profile as text.
#pragma once

#include <string>
#include <vector>

#include "estimator/profile/rank_profile.h"
#include "sim/cli/report/table.h"

namespace sim {

/// Parameters, micro-batches, the table of phases (MiB), the peak with its place and what fills it,
/// and the line about the allocator.
std::string profile_text(const estimator::RankProfile& profile);

/// Each phase in MiB: allocated before, after and at its peak; reserved at its peak. Only a real
/// GPU's time says how long a phase takes; elsewhere, and where a program does not wait for its GPU
/// between phases, it is what the host needed to run it.
Table phase_table(const estimator::RankProfile& profile);

/// What profile_text() tells in tables: the phases, and what fills the peak if memory was
/// attributed.
std::vector<TitledTable> profile_tables(const estimator::RankProfile& profile);

/// A table with the bytes of each category and their share.
Table category_table(const estimator::CategoryBytes& categories);

/// The peak with its place, in a line without a newline.
std::string peak_line(const estimator::PeakRecord& peak);

/// The peak with its place and, if memory was attributed, what fills it.
std::string peak_text(const estimator::PeakRecord& peak);

/// The table of phases (MiB) and the peak with its place.
std::string phases_text(const estimator::RankProfile& profile);

/// A line with the statistics of the caching allocator; "" if there was none.
std::string allocator_text(const estimator::RankProfile& profile);

/// "17 (tensor 1, data 2, stage 0)"
std::string rank_text(int64_t rank, const estimator::RankCoordinate& coordinate);

}  // namespace sim
