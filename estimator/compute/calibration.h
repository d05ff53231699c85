// What `onerank calibrate` measured on a GPU, as JSON: it replaces the built-in rates.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/document_head.h"
#include "estimator/compute/attention_rate.h"
#include "estimator/compute/matmul_rate.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

inline constexpr int64_t kCalibrationSchemaVersion = 1;

/// Sides of matrices, tokens and heads: up to what a GPU's memory has room for.
inline constexpr Range kMeasuredSize = {1, 1e7};
/// No kernel ends within a nanosecond, and nobody measures one that takes a quarter of an hour.
inline constexpr Range kMeasuredSeconds = {1e-9, 1e3};

struct MeasuredMatmul {
  Dtype dtype = Dtype::kBf16;
  int64_t m = 1, n = 1, k = 1;
  bool accumulates = false;
  double seconds = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, MeasuredMatmul& row) {
  visit("dtype", row.dtype, "of the operands");
  visit("m", row.m, {"rows of the output", kMeasuredSize});
  visit("n", row.n, {"columns of the output", kMeasuredSize});
  visit("k", row.k, {"what is summed over", kMeasuredSize});
  visit("accumulates", row.accumulates, "added to an fp32 sum");
  visit("seconds", row.seconds, {"of one product, in a row of many", kMeasuredSeconds});
}

struct MeasuredAttention {
  AttentionPass pass = AttentionPass::kForward;
  int64_t batch = 1, heads = 1, sequence = 1, head_width = 128;
  double seconds = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, MeasuredAttention& row) {
  visit("pass", row.pass, "forward or backward");
  visit("batch", row.batch, {"samples", kMeasuredSize});
  visit("heads", row.heads, {"query heads, as many as key/value heads", kMeasuredSize});
  visit("sequence", row.sequence, {"tokens", kMeasuredSize});
  visit("head_width", row.head_width, {"kv_channels", kMeasuredSize});
  visit("seconds", row.seconds, {"of one causal call", kMeasuredSeconds});
}

struct MeasuredStream {
  int64_t bytes = 0;
  double seconds = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, MeasuredStream& row) {
  visit("bytes", row.bytes, {"read and written by one kernel", Range{1, kBytes.most}});
  visit("seconds", row.seconds, {"that it took", kMeasuredSeconds});
}

struct MeasuredLaunch {
  double kernel_seconds = 0;
  double host_seconds = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, MeasuredLaunch& launch) {
  visit("kernel_seconds",
        launch.kernel_seconds,
        {"of a kernel with nothing to do, on the GPU", kMeasuredSeconds});
  visit("host_seconds",
        launch.host_seconds,
        {"of an operator's call from C++, on the host", kMeasuredSeconds});
}

struct Calibration {
  DocumentHead head{kCalibrationSchemaVersion, "calibration"};
  ToolVersion tool;
  DeviceRecord device;
  std::string driver;
  std::string date;
  std::vector<MeasuredMatmul> matmul;
  std::vector<MeasuredAttention> attention;
  std::vector<MeasuredStream> streams;
  std::vector<MeasuredStream> optimizer;
  MeasuredLaunch launch;
  std::string note;
};
template <class Visitor>
void visit_fields(Visitor& visit, Calibration& calibration) {
  visit_head(visit, calibration.head);
  visit("tool", calibration.tool, "who wrote it");
  visit("device", calibration.device, "what was measured");
  visit("driver", calibration.driver, "version of the GPU's driver");
  visit("date", calibration.date, "of the measurement, YYYY-MM-DD");
  visit("matmul", calibration.matmul, "matrix products");
  visit("attention", calibration.attention, "causal flash attention");
  visit("streams", calibration.streams, "copies");
  visit("optimizer", calibration.optimizer, "fused AdamW steps");
  visit("launch", calibration.launch, "what a kernel costs besides its work");
  visit("note", calibration.note, "what a reader must know");
}

/// FLOPs of a call: the forward has 2 products of [sequence, sequence] x [sequence, width] for each
/// head, and a causal mask leaves half of them; the backward has 5 (FlashAttention-2, section 4.1).
double causal_flops(const MeasuredAttention& row);

/// Reads a calibration, and sorts its copies and optimizer steps by size. Throws UserError when the
/// text is no calibration, has another version, or holds times and sizes that no measurement can
/// give.
Calibration read_calibration(std::string_view text, const std::string& origin);

/// Throws UserError unless the calibration was measured on a real GPU of the kind `gpu`, and when
/// it holds rates that such a GPU cannot reach.
void check_calibration_is_of(const Calibration& calibration,
                             const Gpu& gpu,
                             const std::string& origin);

}  // namespace estimator
