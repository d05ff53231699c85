#include "estimator/compute/memory_rate.h"

#include <string_view>

#include "estimator/base/contains.h"
#include "estimator/base/database.h"
#include "estimator/base/interpolate.h"

namespace onerank_data {
extern const std::string_view memory_json;
}

namespace estimator {
namespace {

struct StreamRow {
  std::vector<std::string> gpus;
  double share_of_peak = 0;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, StreamRow& row) {
  visit("gpus", row.gpus, "ids of the GPU database");
  visit("share_of_peak", row.share_of_peak, "measured over peak");
  visit("source", row.source, "where it was read");
}

struct Step {
  double bytes = 0;
  double share = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, Step& step) {
  visit("bytes", step.bytes, "moved by one kernel");
  visit("share", step.share, "of the large streams' rate");
}

struct MemoryTables {
  std::vector<StreamRow> streams;
  std::vector<Step> ladder;
  std::string ladder_source;
  double fused_adam = 1;
  std::string fused_adam_source;
};
template <class Visitor>
void visit_fields(Visitor& visit, MemoryTables& tables) {
  visit("streams", tables.streams, "large streams");
  visit("ladder", tables.ladder, "what smaller ones reach of that");
  visit("ladder_source", tables.ladder_source, "of the ladder");
  visit("fused_adam", tables.fused_adam, "what the fused optimizer step reaches of large streams");
  visit("fused_adam_source", tables.fused_adam_source, "of that");
}

const MemoryTables& memory_tables() {
  static const auto read = read_document<MemoryTables>(onerank_data::memory_json, "memory.json");
  return read;
}

}  // namespace

MemoryRate memory_rate(const Gpu& gpu) {
  for (const StreamRow& row : memory_tables().streams) {
    if (contains(row.gpus, gpu.id)) {
      return {row.share_of_peak, Source::kPublished, row.source};
    }
  }
  return {0.85, Source::kAssumed, "no rate is published for this GPU: 85 % of peak"};
}

double fused_adam_share() { return memory_tables().fused_adam; }

double memory_size_share(double bytes) {
  static const std::vector<CurvePoint> points = [] {
    std::vector<CurvePoint> steps;
    for (const Step& step : memory_tables().ladder) steps.push_back({step.bytes, step.share});
    return steps;
  }();
  return interpolate_log(points, bytes);
}

}  // namespace estimator
