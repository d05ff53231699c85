// The files of a rank's memory that can be asked for, by the same flags of `onerank` (with a path)
// and of the rank process (without: it writes them beside the profile).
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>

namespace sim {

struct MemoryFileKind {
  const char* flag;
  const char* suffix;
  const char* help;
};

inline constexpr std::array<MemoryFileKind, 3> kMemoryFiles = {{
    {"--peak-snapshot", "peak.jsonl", "write every allocation at the peak, as JSON Lines"},
    {"--memory-history",
     "history.pickle",
     "write PyTorch's memory snapshot, for https://pytorch.org/memory_viz"},
    {"--memory-timeline",
     "timeline.csv",
     "write allocated, reserved and each category over time, as CSV"},
}};
enum MemoryFile : std::size_t { kPeakSnapshot, kMemoryHistory, kTimeline };

/// Something for each kind of file.
template <class T>
using ForEachMemoryFile = std::array<T, kMemoryFiles.size()>;

/// "rank-00017.peak.jsonl"
inline std::string memory_file_name(std::size_t file, int64_t rank) {
  return fmt::format("rank-{:05}.{}", rank, kMemoryFiles[file].suffix);
}

}  // namespace sim
