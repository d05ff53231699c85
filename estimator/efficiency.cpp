#include "estimator/efficiency.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include "estimator/files.h"
#include "estimator/interpolate.h"

namespace onerank_data {
extern const std::string_view efficiency_json;
}

namespace estimator {
namespace {

struct MeasuredShare {
  std::vector<std::string> gpus;
  double share_of_peak = 0;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, MeasuredShare& row) {
  visit("gpus", row.gpus, "ids of the GPU database");
  visit("share_of_peak", row.share_of_peak, "measured over peak");
  visit("source", row.source, "where it was read");
}

enum class CurvePass { kForward, kBackward, kBoth };
constexpr std::array<EnumName<CurvePass>, 3> enum_names(CurvePass) {
  return {{{CurvePass::kForward, "forward"},
           {CurvePass::kBackward, "backward"},
           {CurvePass::kBoth, "both"}}};
}

struct AttentionCurve {
  std::string kernel;
  std::vector<std::string> gpus;
  std::string measured_on;
  std::vector<Dialect> dialects;
  CurvePass pass = CurvePass::kBoth;
  int64_t head_width = 0;
  std::vector<int64_t> sequence;
  std::vector<double> teraflops;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, AttentionCurve& row) {
  visit("kernel", row.kernel, "whose kernel");
  visit("gpus", row.gpus, "GPUs that it is used for");
  visit("measured_on", row.measured_on, "the GPU of the measurement");
  visit("dialects", row.dialects, "dialects that use it");
  visit("pass", row.pass, "forward, backward, or both together");
  visit("head_width", row.head_width, "kv_channels");
  visit("sequence", row.sequence, "tokens");
  visit("teraflops", row.teraflops, "rate at each sequence");
  visit("source", row.source, "where it was read");
}

struct EfficiencyTables {
  std::vector<MeasuredShare> matmul;
  std::vector<MeasuredShare> memory;
  std::vector<AttentionCurve> attention;
};
template <class Visitor>
void visit_fields(Visitor& visit, EfficiencyTables& tables) {
  visit("matmul", tables.matmul, "matrix products");
  visit("memory", tables.memory, "streams");
  visit("attention", tables.attention, "flash attention");
}

const EfficiencyTables& tables() {
  static const EfficiencyTables read = [] {
    FieldReader reader("efficiency.json");
    EfficiencyTables result;
    reader.read(parse_json(onerank_data::efficiency_json, "efficiency.json"), result, "");
    reader.throw_if_any();
    return result;
  }();
  return read;
}

template <class T>
bool contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

Share share_in(const std::vector<MeasuredShare>& rows, const Gpu& gpu, double assumed_share) {
  for (const MeasuredShare& row : rows) {
    if (contains(row.gpus, gpu.id)) return {row.share_of_peak, false};
  }
  return {assumed_share, true};
}

bool covers(CurvePass curve, AttentionPass pass) {
  return curve == CurvePass::kBoth ||
         (curve == CurvePass::kForward) == (pass == AttentionPass::kForward);
}

/// The curve for `gpu_id` whose head width is nearest, or null.
const AttentionCurve* find_curve(const std::string& gpu_id,
                                 Dialect dialect,
                                 AttentionPass pass,
                                 int64_t head_width) {
  const AttentionCurve* nearest = nullptr;
  for (const AttentionCurve& row : tables().attention) {
    if (!contains(row.gpus, gpu_id) || !contains(row.dialects, dialect) ||
        !covers(row.pass, pass)) {
      continue;
    }
    const auto distance = [&](const AttentionCurve& c) {
      return std::abs(c.head_width - head_width);
    };
    if (nearest == nullptr || distance(row) < distance(*nearest)) nearest = &row;
  }
  return nearest;
}

double share_on_curve(const AttentionCurve& curve, int64_t sequence) {
  std::vector<CurvePoint> points;
  for (std::size_t i = 0; i < curve.sequence.size(); ++i) {
    points.push_back({static_cast<double>(curve.sequence[i]), curve.teraflops[i]});
  }
  const Gpu* measured = find_gpu(curve.measured_on);
  if (measured == nullptr) throw std::logic_error("efficiency.json: unknown GPU");
  const double teraflops = interpolate_log(points, static_cast<double>(sequence));
  return teraflops * 1e12 / measured->peak_flops(Dtype::kFp16);
}

/// Output tiles that cuBLAS has, and what a tile of that size reaches of the largest one's rate
/// (smaller tiles load more for each product). Sizes: NVIDIA, Matrix Multiplication Background
/// User's Guide, section 4; shares are assumed, and hold Azure's A100 table within 20 % from 2,048
/// up (see the test).
struct Tile {
  int64_t rows, columns;
  double share;
};
constexpr std::array<Tile, 4> kTiles = {
    {{256, 128, 1.0}, {128, 128, 0.96}, {128, 64, 0.85}, {64, 64, 0.7}}};
constexpr double kLoopStartUp = 96;  ///< k steps that filling and draining a tile's pipeline costs

}  // namespace

Share matmul_share(const Gpu& gpu) { return share_in(tables().matmul, gpu, 0.8); }

Share memory_share(const Gpu& gpu) { return share_in(tables().memory, gpu, 0.85); }

Share attention_share(
    const Gpu& gpu, Dialect dialect, AttentionPass pass, int64_t head_width, int64_t sequence) {
  const AttentionCurve* curve = find_curve(gpu.id, dialect, pass, head_width);
  const bool assumed = curve == nullptr;
  if (assumed) curve = find_curve("a100-sxm-80", dialect, pass, head_width);
  return {share_on_curve(*curve, sequence), assumed};
}

double matmul_shape_share(const MatmulShape& shape, int64_t multiprocessors) {
  const auto k = static_cast<double>(shape.k);
  const double outputs = static_cast<double>(shape.batch) * static_cast<double>(shape.m) *
                         static_cast<double>(shape.n);
  const auto filled = [&](int64_t rows, int64_t columns) {
    const auto up = [](int64_t a, int64_t b) { return static_cast<double>((a + b - 1) / b); };
    const double tiles =
        static_cast<double>(shape.batch) * up(shape.m, rows) * up(shape.n, columns);
    const double waves = std::ceil(tiles / static_cast<double>(multiprocessors));
    return outputs / (waves * static_cast<double>(multiprocessors * rows * columns));
  };
  double best = 0;
  for (const Tile& tile : kTiles) {
    const double fullest =
        std::max(filled(tile.rows, tile.columns), filled(tile.columns, tile.rows));
    best = std::max(best, tile.share * fullest);
  }
  return best * k / (k + kLoopStartUp);
}

double memory_size_share(double bytes) {
  constexpr std::array<CurvePoint, 4> kLadder = {
      {{1e5, 0.3 / 0.9}, {1e6, 0.6 / 0.9}, {1e7, 0.75 / 0.9}, {1e8, 1.0}}};
  return interpolate_log(kLadder, bytes);
}

}  // namespace estimator
