#include <fmt/format.h>

#include <chrono>
#include <iterator>

#include "sim/tracking/attribution.h"
#include "sim/tracking/memory_files.h"

namespace sim {
namespace {

using estimator::MemoryCategory;

std::string header_line() {
  std::string line = "seconds,phase,direction,micro_batch,module,allocated_bytes,reserved_bytes";
  for (const auto& category : enum_names(MemoryCategory{})) {
    line += fmt::format(",{}_bytes", category.name);
  }
  return line + "\n";
}

}  // namespace

int64_t now_us() {
  using namespace std::chrono;
  return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

std::string timeline_csv(const TrackedRun& tracker, const std::vector<std::string>& phases) {
  const MemoryHistory& history = tracker.history();
  const std::vector<Allocation>& blocks = tracker.memory().log().all();
  std::string text = header_line();
  estimator::CategoryBytes categories;
  const auto line = std::back_inserter(text);
  for (const MemorySample& sample : history.samples) {
    if (sample.block != kNoBlock) {
      const Allocation& block = blocks[sample.block];
      categories[category_of(block)] += sample.made ? block.bytes : -block.bytes;
    }
    const Place& place = sample.place;
    const std::string phase = phase_name(phases, sample.phase);
    const auto direction = direction_in(phase, place);
    fmt::format_to(
        line,
        "{:.6f},{},{},{},{},{},{}",
        static_cast<double>(sample.time_us - history.samples.front().time_us) * 1e-6,
        phase,
        direction ? estimator::to_string(*direction) : "",
        place.micro_batch == estimator::kNoMicroBatch ? "" : std::to_string(place.micro_batch),
        tracker.modules().module(place.module).path,
        sample.allocated_bytes,
        sample.reserved_bytes);
    for (const int64_t bytes : categories.bytes) fmt::format_to(line, ",{}", bytes);
    text += '\n';
  }
  return text;
}

}  // namespace sim
