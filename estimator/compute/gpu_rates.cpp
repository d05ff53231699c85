#include "estimator/compute/gpu_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "estimator/base/contains.h"
#include "estimator/base/database.h"
#include "estimator/base/interpolate.h"

namespace onerank_data {
extern const std::string_view launch_json;
}

namespace estimator {
namespace {

/// A host, told by what the forward of a torch.nn.Linear takes there.
struct KnownHost {
  std::vector<std::string> gpus;
  double linear_seconds = 0;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, KnownHost& row) {
  visit("gpus", row.gpus, "ids of the GPU database that come with it");
  visit("linear_seconds", row.linear_seconds, "the host's, for the forward of a torch.nn.Linear");
  visit("source", row.source, "where it was read");
}

/// A torch, told by what the backward of a small LayerNorm takes of the host.
struct OlderTorch {
  std::vector<Framework> frameworks;
  double layer_norm_seconds = 0;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, OlderTorch& row) {
  visit("frameworks", row.frameworks, "that run with it");
  visit("layer_norm_seconds", row.layer_norm_seconds, "the host's, for the backward");
  visit("source", row.source, "where it was read");
}

struct HostRange {
  std::string range;
  double seconds = 0;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, HostRange& row) {
  visit("range", row.range, "its name");
  visit("seconds", row.seconds, "of Python, without the operators and kernels in it");
  visit("source", row.source, "where it comes from");
}

struct LaunchTable {
  LaunchCost cost;
  double operator_seconds = 0;
  std::vector<HostRange> ranges;
  std::vector<std::string> library_kernels;
  double linear_seconds = 0;
  double layer_norm_seconds = 0;
  std::string operator_source, kernel_source, call_source, wait_source, layer_norm_source,
      graph_source;
  std::vector<KnownHost> hosts;
  std::vector<OlderTorch> older_torches;

  const KnownHost* host_of(const Gpu& gpu) const {
    const auto row = std::find_if(hosts.begin(), hosts.end(), [&](const KnownHost& host) {
      return contains(host.gpus, gpu.id);
    });
    return row == hosts.end() ? nullptr : &*row;
  }
};
template <class Visitor>
void visit_fields(Visitor& visit, LaunchTable& table) {
  visit("kernel_seconds", table.cost.kernel_seconds, "from kernel to kernel on the GPU");
  visit("kernel_source", table.kernel_source, "where it comes from");
  visit("operator_seconds", table.operator_seconds, "the same for all that an operator launches");
  visit("operator_source", table.operator_source, "where it comes from");
  visit("host_call_seconds", table.cost.host_call_seconds, "of a kernel, copy or collective");
  visit("host_operator_seconds",
        table.cost.host_operator_seconds,
        "of an operator or node of autograd, without its kernels");
  visit("host_loop_seconds",
        table.cost.host_loop_seconds,
        "of a further kernel of the same operator, which no other operator asks for");
  visit("host_call_source", table.call_source, "where the three come from");
  visit("library_kernels",
        table.library_kernels,
        "parts of names of kernels that a library's C++ launches: each takes as a further one");
  visit("host_ranges", table.ranges, "what Python does in ranges that libraries open");
  visit("wait_seconds", table.cost.wait_seconds, "of waiting for one kernel");
  visit("wait_source", table.wait_source, "where it comes from");
  visit("graph_kernel_seconds",
        table.cost.graph_kernel_seconds,
        "from kernel to kernel on the GPU, in a CUDA graph");
  visit("graph_launch_seconds", table.cost.graph_launch_seconds, "of the launch of a CUDA graph");
  visit("graph_source", table.graph_source, "where the two come from");
  visit("linear_seconds",
        table.linear_seconds,
        "of the host on which calls were measured, for the forward of a torch.nn.Linear");
  visit("hosts", table.hosts, "other hosts");
  visit("layer_norm_seconds",
        table.layer_norm_seconds,
        "of the same host, for the backward of a small LayerNorm");
  visit("layer_norm_source", table.layer_norm_source, "where it comes from");
  visit("older_torches", table.older_torches, "with which calls take longer");
}

const LaunchTable& launch_table() {
  static const auto table = read_document<LaunchTable>(onerank_data::launch_json, "launch.json");
  return table;
}

double square_of_log(int64_t a, int64_t b) {
  const double log = std::log(static_cast<double>(a) / static_cast<double>(b));
  return log * log;
}

/// The row with the least distance; rows of infinite distance are none.
template <class Row, class Distance>
const Row* nearest_row(const std::vector<Row>& rows, const Distance& distance) {
  const Row* nearest = nullptr;
  double least = INFINITY;
  for (const Row& row : rows) {
    const double here = distance(row);
    if (here < least) {
      least = here;
      nearest = &row;
    }
  }
  return nearest;
}

double on_measured_curve(const std::vector<MeasuredStream>& rows, double bytes) {
  std::vector<CurvePoint> points;
  points.reserve(rows.size());
  for (const MeasuredStream& row : rows) {
    points.push_back(
        {static_cast<double>(row.bytes), static_cast<double>(row.bytes) / row.seconds});
  }
  return interpolate_log(points, bytes);
}

/// Whether the cuBLAS of plans runs a batch of products on the fp32 units (data/matmul.json), which
/// load single elements.
bool is_off_tensor_cores(const MatmulShape& shape, Priced priced) {
  return shape.batch > 1 && shape.is_misaligned && priced == Priced::kOperators;
}

std::string measured_note(const Calibration& calibration) {
  return fmt::format(
      "{}, driver {}, {}", calibration.device.name, calibration.driver, calibration.date);
}

bool is_library_kernel(std::string_view name) {
  const std::vector<std::string>& parts = launch_table().library_kernels;
  return std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
    return name.find(part) != name.npos;
  });
}

}  // namespace

bool is_host_range(std::string_view name) {
  const std::vector<HostRange>& ranges = launch_table().ranges;
  return std::any_of(
      ranges.begin(), ranges.end(), [&](const HostRange& row) { return row.range == name; });
}

double LaunchCost::call_seconds(int64_t operators,
                                bool is_of_operator,
                                std::string_view name) const {
  const bool is_further = operators == 0 && is_of_operator;
  return is_further || is_library_kernel(name) ? host_loop_seconds : host_call_seconds;
}

void LaunchCost::slow_host(double times) {
  for (double* seconds : {&host_call_seconds, &host_operator_seconds, &host_loop_seconds}) {
    *seconds *= times;
  }
  for (auto& [range, seconds] : host_ranges) seconds *= times;
}

LaunchCost assumed_launch_cost(const Gpu& gpu, Priced priced) {
  LaunchCost cost = launch_table().cost;
  for (const HostRange& row : launch_table().ranges) cost.host_ranges[row.range] = row.seconds;
  if (priced == Priced::kOperators) cost.kernel_seconds = launch_table().operator_seconds;
  if (const KnownHost* host = launch_table().host_of(gpu)) {
    cost.slow_host(host->linear_seconds / launch_table().linear_seconds);
  }
  return cost;
}

LaunchCost with_torch_of(Framework framework, LaunchCost launch) {
  const LaunchTable& table = launch_table();
  for (const OlderTorch& older : table.older_torches) {
    if (!contains(older.frameworks, framework)) continue;
    launch.slow_host(older.layer_norm_seconds / table.layer_norm_seconds);
  }
  return launch;
}

GpuRates::GpuRates(const Gpu& gpu,
                   const Calibration* calibration,
                   const AttentionKernel& attention,
                   double slowdown,
                   Priced priced)
    : gpu_(gpu),
      attention_(attention),
      slowdown_(slowdown),
      priced_(priced),
      calibration_(calibration),
      power_(calibration == nullptr ? board_power(gpu) : nullptr),
      matmul_(usual_rate(matmul_rate(gpu))),
      matmul_of_single_elements_(priced == Priced::kKernels ? single_element_rate(gpu) : matmul_),
      memory_(memory_rate(gpu)),
      launch_(assumed_launch_cost(gpu, priced)) {
  attention_.by_call = priced == Priced::kKernels;
  if (calibration == nullptr) return;
  launch_.kernel_seconds = calibration->launch.kernel_seconds;
  // The framework's share is not measured, but its calls take no less than one from C++.
  launch_.host_call_seconds = std::max(launch_.host_call_seconds, calibration->launch.host_seconds);
}

/// Without the limit of the board's power, which takes as much of each type's rate as of bf16's: an
/// H200 reached 1,527 TFLOP/s in Float8 at full speed (data/power.json), and so it is 1,523.
MatmulRate GpuRates::at_full_speed(MatmulRate rate) const {
  const MatmulRate bf16 = matmul_rate(gpu_);
  rate.sustained_share *= bf16.best_share / bf16.sustained_share;
  rate.best_share = std::max(rate.best_share, rate.sustained_share);
  return rate;
}

MatmulRate GpuRates::usual_rate(const MatmulRate& rate) const {
  return power_ == nullptr || priced_ == Priced::kOperators ? rate : at_full_speed(rate);
}

double GpuRates::product_speed(const MatmulShape& shape,
                               std::optional<ProductScaling> scaling) const {
  const auto rate = scaling ? scaled_rate(gpu_, *scaling) : matmul_rate(gpu_);
  if (!rate) return 1;
  return matmul_share(usual_rate(*rate), gpu_, shape, false) /
         matmul_share(at_full_speed(*rate), gpu_, shape, false);
}

double GpuRates::matmul_flops_per_second(const MatmulShape& shape,
                                         Dtype dtype,
                                         bool accumulates) const {
  if (is_of_vectors(shape)) return gpu_.peak_flops(Dtype::kFp32);
  const Dtype units = is_off_tensor_cores(shape, priced_) ? Dtype::kFp32 : dtype;
  MatmulShape loaded = shape;
  loaded.is_misaligned = shape.is_misaligned && units != Dtype::kFp32;
  const MatmulRate& rate = units == Dtype::kFp32 ? matmul_of_single_elements_ : matmul_;
  return gpu_.peak_flops(units) * matmul_share(rate, gpu_, loaded, accumulates) *
         measured_over_modelled(shape, dtype, accumulates);
}

double GpuRates::flops_per_second_as_bf16(const std::optional<double>& peak,
                                          const MatmulShape& shape) const {
  if (!peak || !gpu_.peak_flops_per_second.bf16) return 0;
  if (is_of_vectors(shape)) return matmul_flops_per_second(shape, Dtype::kFp32, false);
  return *peak * matmul_share(matmul_, gpu_, shape, false) *
         measured_over_modelled(shape, Dtype::kBf16, false);
}

double GpuRates::fp64_flops_per_second(const MatmulShape& shape) const {
  const std::optional<double>& peak = gpu_.peak_flops_per_second.fp64;
  if (!peak) return 0;
  if (is_of_vectors(shape)) return matmul_flops_per_second(shape, Dtype::kFp32, false);
  return *peak * matmul_share(matmul_of_single_elements_, gpu_, shape, false);
}

double GpuRates::scaled_flops_per_second(const MatmulShape& shape, ProductScaling scaling) const {
  const std::optional<double>& peak = scaled_peak(gpu_, scaling);
  const std::optional<double>& of_bf16 = gpu_.peak_flops_per_second.bf16;
  if (!peak || !of_bf16) return 0;
  const std::optional<MatmulRate> own = scaled_rate(gpu_, scaling);
  if (!own) return matmul_flops_per_second(shape, Dtype::kBf16, false) * *peak / *of_bf16;
  return *peak * matmul_share(usual_rate(*own), gpu_, shape, false);
}

double GpuRates::attention_flops_per_second(const AttentionShape& shape) const {
  return attention_rate(gpu_, shape, attention_).flops_per_second * measured_over_modelled(shape);
}

double GpuRates::memory_bytes_per_second(double bytes, bool optimizer) const {
  if (calibration_ != nullptr) {
    const auto& rows = optimizer ? calibration_->optimizer : calibration_->streams;
    if (!rows.empty()) return on_measured_curve(rows, bytes);
  }
  return gpu_.memory_bandwidth_bytes_per_second * memory_.share * memory_size_share(bytes) *
         (optimizer ? fused_adam_share() : 1);
}

double GpuRates::measured_over_modelled(const MatmulShape& shape,
                                        Dtype dtype,
                                        bool accumulates) const {
  if (calibration_ == nullptr) return 1;
  const MeasuredMatmul* row = nearest_row(calibration_->matmul, [&](const MeasuredMatmul& r) {
    if (r.dtype != dtype || r.accumulates != accumulates) return static_cast<double>(INFINITY);
    return square_of_log(r.m, shape.batch * shape.m) + square_of_log(r.n, shape.n) +
           square_of_log(r.k, shape.k);
  });
  if (row == nullptr) return 1;
  const MatmulShape measured{.m = row->m, .n = row->n, .k = row->k};
  const double modelled =
      gpu_.peak_flops(dtype) * matmul_share(matmul_, gpu_, measured, accumulates);
  return measured.flops() / row->seconds / modelled;
}

double GpuRates::measured_over_modelled(const AttentionShape& shape) const {
  if (calibration_ == nullptr) return 1;
  const MeasuredAttention* row =
      nearest_row(calibration_->attention, [&](const MeasuredAttention& r) {
        if (r.pass != shape.pass) return static_cast<double>(INFINITY);
        return square_of_log(r.batch * r.heads, shape.batch * shape.heads) +
               square_of_log(r.sequence, shape.sequence) +
               square_of_log(r.head_width, shape.head_width);
      });
  if (row == nullptr) return 1;
  const AttentionShape measured{.pass = row->pass,
                                .batch = row->batch,
                                .heads = row->heads,
                                .sequence = row->sequence,
                                .head_width = row->head_width};
  return causal_flops(*row) / row->seconds / attention_rate(gpu_, measured).flops_per_second;
}

std::vector<RateTerm> GpuRates::launch_terms() const {
  const LaunchTable& table = launch_table();
  const KnownHost* host = table.host_of(gpu_);
  const std::string other = host != nullptr ? "; as much longer here: " + host->source : "";
  const auto term = [](const std::string& what, double seconds, const std::string& source) {
    return RateTerm{what, seconds, "seconds", Source::kAssumed, source};
  };
  const bool of_program = priced_ == Priced::kKernels;
  RateTerm launch = term("launch of a kernel on the GPU",
                         launch_.kernel_seconds,
                         of_program ? table.kernel_source : table.operator_source);
  if (calibration_ != nullptr) {
    launch.source = Source::kMeasured;
    launch.note = measured_note(*calibration_);
  }
  std::vector<RateTerm> terms = {
      launch,
      term("kernel or copy, on the host", launch_.host_call_seconds, table.call_source + other),
      term("operator or node of autograd, on the host",
           launch_.host_operator_seconds,
           table.call_source + other)};
  if (of_program) {
    terms.push_back(term("further kernel of an operator, on the host",
                         launch_.host_loop_seconds,
                         table.call_source + other));
  }
  return terms;
}

std::vector<RateTerm> GpuRates::terms(Dtype dtype, bool flash) const {
  std::vector<RateTerm> terms;
  const auto add = [&](RateTerm term, bool measured) {
    if (measured) {
      term.source = Source::kMeasured;
      term.note = measured_note(*calibration_);
    }
    terms.push_back(std::move(term));
  };
  const Calibration nothing;
  const Calibration& measured = calibration_ != nullptr ? *calibration_ : nothing;
  const MatmulShape large{.m = 8192, .n = 8192, .k = 8192};
  add({fmt::format("matrix products, {}, 8192 cubed", to_string(dtype)),
       matmul_flops_per_second(large, dtype, false),
       "flops_per_second",
       matmul_.source,
       matmul_.note},
      std::any_of(measured.matmul.begin(), measured.matmul.end(), [&](const MeasuredMatmul& row) {
        return row.dtype == dtype;
      }));
  const auto [key, value] = std::pair{attention_.key_width, attention_.value_width};
  const std::string widths =
      key == value ? std::to_string(key) : fmt::format("{} and {}", key, value);
  for (const AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward}) {
    if (!flash) break;
    const AttentionShape usual{.pass = pass,
                               .heads = 64,
                               .sequence = 8192,
                               .head_width = attention_.key_width,
                               .value_width = attention_.value_width};
    const AttentionRate rate = attention_rate(gpu_, usual, attention_);
    add({fmt::format("flash attention {}, 64 heads of {}, 8192 tokens", to_string(pass), widths),
         attention_flops_per_second(usual),
         "flops_per_second",
         rate.source,
         rate.note},
        !measured.attention.empty());
  }
  add({"memory streams of 1 GB",
       memory_bytes_per_second(1e9),
       "bytes_per_second",
       memory_.source,
       memory_.note},
      !measured.streams.empty());
  for (RateTerm& term : launch_terms()) add(std::move(term), false);
  return terms;
}

}  // namespace estimator
