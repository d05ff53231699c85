// One rank in detail: its memory from allocation to allocation, and all that is live at its peak.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/profile/peak_snapshot.h"
#include "sim/cli/process/temporary_folder.h"
#include "sim/cli/report/memory_picture.h"
#include "sim/tracking/memory_file_kinds.h"

namespace sim {

struct RankDetail {
  std::vector<MemoryPoint> history;
  std::optional<estimator::PeakSnapshot> peak;
};

/// The memory files that a page needs, written beside those that the user wants.
class DetailFiles {
 public:
  /// Paths for a peak snapshot and a timeline: those of `wanted`, else in a folder of its own.
  explicit DetailFiles(ForEachMemoryFile<std::string> wanted);

  const ForEachMemoryFile<std::string>& paths() const { return paths_; }
  /// What the rank wrote, which was one of `ranks` ranks. Throws UserError if it cannot be read.
  RankDetail read(int64_t rank, std::size_t ranks) const;

 private:
  TemporaryFolder folder_;
  ForEachMemoryFile<std::string> paths_;
};

/// The history as JSON for the picture of it: at most some hundred points, each of which is the
/// largest of its share of the run, so that the peak is among them. {"categories": [names],
/// "phases": [{"name", "begin"}], "points": [[KiB of each category, KiB reserved]], "limit_bytes"}
std::string history_json(const std::vector<MemoryPoint>& history, int64_t limit_bytes);

}  // namespace sim
