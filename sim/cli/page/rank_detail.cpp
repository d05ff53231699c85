#include "sim/cli/page/rank_detail.h"

#include <algorithm>
#include <utility>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/base/units.h"
#include "sim/cli/ranks/rank_process.h"

namespace sim {
namespace {

using estimator::Json;

constexpr std::size_t kMostPoints = 700;

Json point_json(const MemoryPoint& point) {
  Json numbers = Json::array();
  for (const int64_t bytes : point.categories.bytes) numbers.push_back(bytes / estimator::kKiB);
  numbers.push_back(point.reserved_bytes / estimator::kKiB);
  return numbers;
}

}  // namespace

DetailFiles::DetailFiles(ForEachMemoryFile<std::string> wanted) : paths_(std::move(wanted)) {
  for (const MemoryFile file : {kPeakSnapshot, kTimeline}) {
    if (paths_[file].empty()) paths_[file] = folder_.path() / kMemoryFiles[file].suffix;
  }
}

RankDetail DetailFiles::read(int64_t rank, std::size_t ranks) const {
  const std::string peak = path_for_rank(paths_[kPeakSnapshot], rank, ranks);
  return {.history = read_memory_timeline(path_for_rank(paths_[kTimeline], rank, ranks)),
          .peak = estimator::read_peak_snapshot(estimator::read_file(peak), peak)};
}

std::string history_json(const std::vector<MemoryPoint>& history, int64_t limit_bytes) {
  Json categories = Json::array();
  for (const auto& category : enum_names(estimator::MemoryCategory{})) {
    categories.push_back(category.name);
  }
  Json phases = Json::array(), points = Json::array();
  std::string phase;
  const std::size_t shares = std::min(kMostPoints, history.size());
  for (std::size_t share = 0; share < shares; ++share) {
    const auto at = [&](std::size_t s) {
      return history.begin() + static_cast<std::ptrdiff_t>(s * history.size() / shares);
    };
    for (auto point = at(share); point != at(share + 1); ++point) {
      if (point->phase == phase) continue;
      phase = point->phase;
      phases.push_back({{"name", phase}, {"begin", share}});
    }
    points.push_back(
        point_json(*std::max_element(at(share), at(share + 1), [](const auto& a, const auto& b) {
          return a.allocated_bytes < b.allocated_bytes;
        })));
  }
  return Json{{"categories", categories},
              {"phases", phases},
              {"points", points},
              {"limit_bytes", limit_bytes}}
      .dump();
}

}  // namespace sim
