#include "estimator/compute/matmul_rate.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "estimator/base/contains.h"
#include "estimator/base/database.h"

namespace onerank_data {
extern const std::string_view matmul_json;
}

namespace estimator {
namespace {

struct GpuRow {
  std::vector<std::string> gpus;
  double best_share = 0, sustained_share = 0, accumulate_share = 0;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, GpuRow& row) {
  visit("gpus", row.gpus, "ids of the GPU database");
  visit("best_share", row.best_share, "of peak, of the best shape");
  visit("sustained_share", row.sustained_share, "of peak, that the board's power allows");
  visit("accumulate_share", row.accumulate_share, "left when the product is added to fp32");
  visit("source", row.source, "where it was read");
}

struct ScaledRow {
  std::vector<std::string> gpus;
  std::vector<ProductScaling> scaling;
  double best_share = 0, sustained_share = 0;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, ScaledRow& row) {
  visit("gpus", row.gpus, "ids of the GPU database");
  visit("scaling", row.scaling, "what has a scale of its own");
  visit("best_share", row.best_share, "of the peak of its type, of the best shape");
  visit("sustained_share", row.sustained_share, "of it, that the board's power allows");
  visit("source", row.source, "where it was read");
}

struct Tile {
  int64_t rows = 0, columns = 0;
  double share = 0;
  bool is_small = false;
};
template <class Visitor>
void visit_fields(Visitor& visit, Tile& tile) {
  visit("rows", tile.rows, "of the output");
  visit("columns", tile.columns, "of the output");
  visit("share", tile.share, "of the largest tile's rate: small tiles load more for each product");
  visit("small", tile.is_small, "only kernels without tensor cores have it");
}

struct LoopRow {
  std::vector<std::string> architectures;
  double start_up_steps = 0;
  bool shares_out_k = false;
  std::string k_source;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, LoopRow& row) {
  visit("architectures", row.architectures, "of the GPU database; empty: all others");
  visit("start_up_steps", row.start_up_steps, "k steps");
  visit("shares_out_k", row.shares_out_k, "whether k is shared out where tiles are few (split-K)");
  visit("k_source", row.k_source, "how that is known");
  visit("source", row.source, "where it comes from");
}

struct MisalignedRow {
  std::vector<std::string> gpus;
  double share = 1;
  std::optional<double> share_in_pairs;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, MisalignedRow& row) {
  visit("gpus", row.gpus, "ids of the GPU database; empty: all others");
  visit("share", row.share, "left when rows are not 16-byte multiples");
  visit(
      "share_in_pairs", row.share_in_pairs, "left when they are 4-byte multiples; empty: the same");
  visit("source", row.source, "where it was read");
}

/// Kernels of programs without tensor cores.
struct SingleElements {
  double start_up_steps = 0;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, SingleElements& loop) {
  visit("start_up_steps", loop.start_up_steps, "k steps");
  visit("source", loop.source, "where it comes from");
}

struct Int8Row {
  std::vector<std::string> architectures;
  double share = 1;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, Int8Row& row) {
  visit("architectures", row.architectures, "of the GPU database");
  visit("share", row.share, "of the rate that the shares of 16-bit products would give");
  visit("source", row.source, "where it was read");
}

struct MatmulTables {
  std::vector<GpuRow> gpus;
  std::vector<ScaledRow> scaled;
  std::vector<Tile> tiles;
  std::string tile_source;
  std::vector<LoopRow> loops;
  SingleElements single_elements;
  std::vector<Int8Row> int8;
  std::vector<MisalignedRow> misaligned;
  std::string misaligned_batch_source;
};
template <class Visitor>
void visit_fields(Visitor& visit, MatmulTables& tables) {
  visit("gpus", tables.gpus, "published rates");
  visit("scaled", tables.scaled, "published rates of products in 8 and in 4 bits");
  visit("tiles", tables.tiles, "output tiles that cuBLAS has");
  visit("tile_source", tables.tile_source, "of the tiles");
  visit("loops", tables.loops, "start-up of a tile's k loop");
  visit("single_elements", tables.single_elements, "kernels without tensor cores, of programs");
  visit("int8", tables.int8, "products of INT8");
  visit("misaligned", tables.misaligned, "products whose rows are not 16-byte multiples");
  visit("misaligned_batch_source",
        tables.misaligned_batch_source,
        "why a batch of such products does without tensor cores");
}

const MatmulTables& matmul_tables() {
  static const auto read = read_document<MatmulTables>(onerank_data::matmul_json, "matmul.json");
  return read;
}

const LoopRow& loop_of(const Gpu& gpu) {
  static const LoopRow none;
  for (const LoopRow& row : matmul_tables().loops) {
    if (row.architectures.empty() || contains(row.architectures, gpu.architecture)) return row;
  }
  return none;
}

double misaligned_share(const Gpu& gpu, bool is_in_pairs) {
  for (const MisalignedRow& row : matmul_tables().misaligned) {
    if (!row.gpus.empty() && !contains(row.gpus, gpu.rates_id())) continue;
    return is_in_pairs ? row.share_in_pairs.value_or(row.share) : row.share;
  }
  return 1;
}

/// Outputs over the outputs that whole waves of tiles would compute.
double filled(const MatmulShape& shape, int64_t rows, int64_t columns, int64_t multiprocessors) {
  const auto up = [](int64_t a, int64_t b) { return static_cast<double>((a + b - 1) / b); };
  const double tiles = static_cast<double>(shape.batch) * up(shape.m, rows) * up(shape.n, columns);
  const double waves = std::ceil(tiles / static_cast<double>(multiprocessors));
  const double outputs = shape.flops() / 2 / static_cast<double>(shape.k);
  return outputs / (waves * static_cast<double>(multiprocessors * rows * columns));
}

/// Of the tilings of cuBLAS: how much of the multiprocessors' rate its tiles use.
double best_tiling(const MatmulShape& shape, int64_t multiprocessors, bool has_small_tiles) {
  double best = 0;
  for (const Tile& tile : matmul_tables().tiles) {
    if (tile.is_small && !has_small_tiles) continue;
    const double fullest = std::max(filled(shape, tile.rows, tile.columns, multiprocessors),
                                    filled(shape, tile.columns, tile.rows, multiprocessors));
    best = std::max(best, tile.share * fullest);
  }
  return best;
}

}  // namespace

MatmulRate matmul_rate(const Gpu& gpu) {
  MatmulRate rate{.best_share = 0.8,
                  .sustained_share = 0.8,
                  .accumulate_share = 0.95,
                  .start_up_steps = loop_of(gpu).start_up_steps,
                  .shares_out_k = loop_of(gpu).shares_out_k,
                  .source = Source::kAssumed,
                  .note = "no rate is published for this GPU: 80 % of peak"};
  for (const GpuRow& row : matmul_tables().gpus) {
    if (!contains(row.gpus, gpu.rates_id())) continue;
    rate.best_share = row.best_share;
    rate.sustained_share = row.sustained_share;
    rate.accumulate_share = row.accumulate_share;
    rate.source = source_of_rate(gpu);
    rate.note = note_of_rate(gpu, row.source);
  }
  return rate;
}

MatmulRate single_element_rate(const Gpu& gpu) {
  MatmulRate rate = matmul_rate(gpu);
  rate.start_up_steps = matmul_tables().single_elements.start_up_steps;
  rate.has_small_tiles = true;
  return rate;
}

double int8_share(const Gpu& gpu) {
  for (const Int8Row& row : matmul_tables().int8) {
    if (contains(row.architectures, gpu.architecture)) return row.share;
  }
  return 1;
}

const std::optional<double>& scaled_peak(const Gpu& gpu, ProductScaling scaling) {
  const PeakFlops& peak = gpu.peak_flops_per_second;
  return scaling == ProductScaling::kNvfp4 ? peak.fp4 : peak.fp8;
}

std::optional<MatmulRate> scaled_rate(const Gpu& gpu, ProductScaling scaling) {
  for (const ScaledRow& row : matmul_tables().scaled) {
    if (!contains(row.gpus, gpu.rates_id()) || !contains(row.scaling, scaling)) continue;
    return MatmulRate{.best_share = row.best_share,
                      .sustained_share = row.sustained_share,
                      .start_up_steps = loop_of(gpu).start_up_steps,
                      .source = source_of_rate(gpu),
                      .note = note_of_rate(gpu, row.source)};
  }
  return std::nullopt;
}

double matmul_shape_share(const MatmulShape& shape,
                          int64_t multiprocessors,
                          double start_up_steps,
                          bool shares_out_k,
                          bool has_small_tiles) {
  constexpr double kFull = 0.95;
  const int64_t most_parts = shares_out_k ? multiprocessors : 1;
  double best = 0;
  for (int64_t parts = 1; parts <= most_parts; ++parts) {
    const double steps = static_cast<double>(shape.k) / static_cast<double>(parts);
    if (parts > 1 && steps < start_up_steps) break;
    MatmulShape part = shape;
    part.batch *= parts;
    const double fullest = best_tiling(part, multiprocessors, has_small_tiles);
    best = std::max(best, fullest * steps / (steps + start_up_steps));
    if (fullest >= kFull) break;
  }
  return best;
}

bool is_of_vectors(const MatmulShape& shape) {
  return shape.m == 1 || shape.n == 1 || shape.k == 1;
}

double matmul_share(const MatmulRate& rate,
                    const Gpu& gpu,
                    const MatmulShape& shape,
                    bool accumulates) {
  const double of_shape =
      rate.best_share *
      matmul_shape_share(
          shape, gpu.multiprocessors, rate.start_up_steps, rate.shares_out_k, rate.has_small_tiles);
  double share = std::min(of_shape, rate.sustained_share);
  if (accumulates) share *= rate.accumulate_share;
  if (shape.is_misaligned) share *= misaligned_share(gpu, shape.is_in_pairs);
  return share;
}

}  // namespace estimator
