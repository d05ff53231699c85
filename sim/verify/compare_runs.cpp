#include "sim/verify/compare_runs.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/units.h"

namespace sim {
namespace {

using Calls = std::vector<estimator::PhaseCall>;
using estimator::MemoryReading;
using estimator::PhaseRecord;

constexpr const char* kNone = "no call here";

/// Up to this many entries the common calls are found exactly.
constexpr std::size_t kLargestTable = 25'000'000;

/// The part of two sequences in which they differ: a range of each.
struct Window {
  std::size_t begin = 0;
  std::size_t stub_end = 0;
  std::size_t real_end = 0;
};

Window differing_window(const Calls& stub, const Calls& real) {
  const std::size_t shorter = std::min(stub.size(), real.size());
  std::size_t begin = 0;
  while (begin < shorter && stub[begin] == real[begin]) ++begin;
  std::size_t tail = 0;
  while (tail < shorter - begin && stub[stub.size() - 1 - tail] == real[real.size() - 1 - tail]) {
    ++tail;
  }
  return {.begin = begin, .stub_end = stub.size() - tail, .real_end = real.size() - tail};
}

/// Pairs (stub index, real index) of a longest common subsequence of the window; none when the
/// window is too large for the table, so that calls are then compared place by place.
std::vector<std::pair<std::size_t, std::size_t>> common_calls(const Calls& stub,
                                                              const Calls& real,
                                                              const Window& window) {
  const std::size_t rows = window.stub_end - window.begin;
  const std::size_t columns = window.real_end - window.begin;
  if ((rows + 1) * (columns + 1) > kLargestTable) return {};
  std::vector<uint32_t> table((rows + 1) * (columns + 1), 0);
  const auto length = [&](std::size_t i, std::size_t j) -> uint32_t& {
    return table[i * (columns + 1) + j];
  };
  const auto same = [&](std::size_t i, std::size_t j) {
    return stub[window.begin + i] == real[window.begin + j];
  };
  for (std::size_t i = rows; i-- > 0;) {
    for (std::size_t j = columns; j-- > 0;) {
      length(i, j) =
          same(i, j) ? length(i + 1, j + 1) + 1 : std::max(length(i + 1, j), length(i, j + 1));
    }
  }
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t i = 0, j = 0; i < rows && j < columns;) {
    if (same(i, j)) {
      pairs.emplace_back(window.begin + i++, window.begin + j++);
    } else if (length(i + 1, j) >= length(i, j + 1)) {
      ++i;
    } else {
      ++j;
    }
  }
  return pairs;
}

std::string text_of(const Calls& calls, std::size_t index) {
  return fmt::format("{} in {}", to_text(calls[index].made), calls[index].phase);
}

void compare_bytes(int64_t rank,
                   const std::string& where,
                   const MemoryReading& stub,
                   const MemoryReading& real,
                   DifferenceList& differences) {
  if (stub.allocated_bytes == real.allocated_bytes) return;
  const auto bytes = [](const MemoryReading& reading) {
    return estimator::with_commas(reading.allocated_bytes) + " bytes";
  };
  differences.add({.rank = rank,
                   .claim = Claim::kMemory,
                   .where = where,
                   .expected = bytes(stub),
                   .found = bytes(real)});
}

}  // namespace

void compare_calls(int64_t rank,
                   const estimator::RunRecord& stub,
                   const estimator::RunRecord& real,
                   DifferenceList& differences) {
  const Window window = differing_window(stub.calls, real.calls);
  auto common = common_calls(stub.calls, real.calls, window);
  common.emplace_back(window.stub_end, window.real_end);
  std::size_t i = window.begin, j = window.begin;
  for (const auto& [stub_end, real_end] : common) {
    while (i < stub_end || j < real_end) {
      const std::size_t number = i;
      const bool in_stub = i < stub_end, in_real = j < real_end;
      Difference difference{.rank = rank,
                            .claim = Claim::kCollectives,
                            .where = fmt::format("call {}", number),
                            .expected = in_stub ? text_of(stub.calls, i) : kNone,
                            .found = in_real ? text_of(real.calls, j) : kNone};
      i += in_stub ? 1 : 0;
      j += in_real ? 1 : 0;
      if (difference.expected != difference.found) differences.add(std::move(difference));
    }
    ++i;
    ++j;
  }
}

void compare_phases(int64_t rank,
                    const estimator::RunRecord& stub,
                    const estimator::RunRecord& real,
                    DifferenceList& differences) {
  const std::size_t shorter = std::min(stub.phases.size(), real.phases.size());
  for (std::size_t i = 0; i < shorter; ++i) {
    const PhaseRecord& expected = stub.phases[i];
    const PhaseRecord& found = real.phases[i];
    compare_bytes(rank, "before " + found.name, expected.before, found.before, differences);
    compare_bytes(rank, "peak of " + found.name, expected.peak, found.peak, differences);
    compare_bytes(rank, "after " + found.name, expected.after, found.after, differences);
  }
  if (stub.phases.size() != real.phases.size()) {
    differences.add({.rank = rank,
                     .claim = Claim::kMemory,
                     .where = "phases",
                     .expected = std::to_string(stub.phases.size()),
                     .found = std::to_string(real.phases.size())});
  }
}

}  // namespace sim
