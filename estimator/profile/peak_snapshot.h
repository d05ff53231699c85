// What fills a rank's peak, allocation by allocation, as JSON Lines: a header, then one line for
// each allocation. The header has their number and the sum of their bytes, so that a truncated file
// is noticed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/document_head.h"
#include "estimator/profile/memory_category.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

inline constexpr int64_t kPeakSnapshotSchemaVersion = 1;

/// One live allocation. The shape of a scalar is an empty list; an allocation for which PyTorch
/// made no tensor (a workspace) has no shape.
struct PeakAllocation {
  MemoryCategory category = MemoryCategory::kTemporary;
  int64_t bytes = 0;
  int64_t requested_bytes = 0;
  std::optional<std::vector<int64_t>> shape;
  std::optional<std::string> dtype;
  std::string name;
  std::string module;
  std::string operator_name;
  std::string phase;
  std::optional<Direction> direction;  ///< empty outside iterations
  std::optional<int64_t> micro_batch;
  int64_t address = 0;
  int64_t stream = 0;
  bool made_the_peak = false;
  std::optional<std::vector<std::string>> frames;
};
template <class Visitor>
void visit_fields(Visitor& visit, PeakAllocation& allocation) {
  visit("category", allocation.category, "what it is for");
  visit("bytes", allocation.bytes, {"the allocator's block", Range{1, kBytes.most}});
  visit("requested_bytes", allocation.requested_bytes, {"asked for, before rounding", kBytes});
  visit("shape", allocation.shape, {"of the tensor that fills it", kCount});
  visit("dtype", allocation.dtype, "of the tensor that fills it");
  visit("name", allocation.name, "of the parameter that it belongs to");
  visit("module",
        allocation.module,
        "module that made it; in backward the module whose forward made the autograd node");
  visit("operator", allocation.operator_name, "in which operator it was made");
  visit("phase", allocation.phase, "in which phase");
  visit("direction", allocation.direction, "where in the iteration");
  visit("micro_batch", allocation.micro_batch, {"for which micro-batch", kCount});
  visit("address", allocation.address, {"on the device", kCount});
  visit("stream", allocation.stream, {"0 for the default stream", kCount});
  visit("made_the_peak", allocation.made_the_peak, "whether this allocation made the peak");
  visit("frames", allocation.frames, "C++ functions that made it, innermost first");
}

/// The sizes of a layout's axes.
struct LayoutRecord {
  int64_t tensor = 1, context = 1, expert = 1, data = 1, pipeline = 1;
};
template <class Visitor>
void visit_fields(Visitor& visit, LayoutRecord& layout) {
  visit("tensor", layout.tensor, {"tensor parallel ranks", kGroupSize});
  visit("context", layout.context, {"context parallel ranks", kGroupSize});
  visit("expert", layout.expert, {"expert parallel ranks", kGroupSize});
  visit("data", layout.data, {"data parallel ranks", kGroupSize});
  visit("pipeline", layout.pipeline, {"pipeline stages", kGroupSize});
}

struct PeakSnapshotHeader {
  DocumentHead head{kPeakSnapshotSchemaVersion, "peak_snapshot"};
  ToolVersion tool;
  std::string plan;
  int64_t rank = 0;
  int64_t world_size = 1;
  LayoutRecord layout;
  RankCoordinate coordinate;
  DeviceRecord device;
  PeakRecord peak;
  int64_t allocations = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, PeakSnapshotHeader& header) {
  visit_head(visit, header.head);
  visit("tool", header.tool, "who wrote it");
  visit("plan", header.plan, "the plan's name");
  visit("rank", header.rank, {"the rank that was run", kCount});
  visit("world_size", header.world_size, {"of the simulated world", kGroupSize});
  visit("layout", header.layout, "ranks along each axis");
  visit("coordinate", header.coordinate, "its place along each axis");
  visit("device", header.device, "what it ran on");
  visit("peak", header.peak, "the peak; its allocated_bytes are the sum of all lines");
  visit("allocations", header.allocations, {"lines that follow", kCount});
}

struct PeakSnapshot {
  PeakSnapshotHeader header;
  std::vector<PeakAllocation> allocations;
};

/// The snapshot as text. Throws std::logic_error when header and allocations do not agree: the
/// header must have their number, their bytes must add up to the allocated peak (in total and for
/// each category), and exactly one of them must have made the peak.
std::string to_json_lines(const PeakSnapshot& snapshot);

/// Reads a snapshot. Throws UserError when the text is no peak snapshot, has another version, is
/// damaged (the message names the line) or is incomplete.
PeakSnapshot read_peak_snapshot(std::string_view text, const std::string& origin);

}  // namespace estimator
