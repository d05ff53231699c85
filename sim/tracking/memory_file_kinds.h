// The memory files of a rank that a user can ask for. `onerank` and the rank process have the same
// flags for them; those of `onerank` take a path, while the rank process writes the files beside
// the profile.
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

/// An array with one T for each kind of file.
template <class T>
using ForEachMemoryFile = std::array<T, kMemoryFiles.size()>;

/// "rank-00017.peak.jsonl"
inline std::string memory_file_name(std::size_t file, int64_t rank) {
  return fmt::format("rank-{:05}.{}", rank, kMemoryFiles[file].suffix);
}

}  // namespace sim
