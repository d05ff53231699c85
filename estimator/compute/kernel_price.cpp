#include "estimator/compute/kernel_price.h"

#include <cmath>
#include <string_view>

#include "estimator/base/contains.h"
#include "estimator/base/database.h"

namespace onerank_data {
extern const std::string_view kernels_json;
}

namespace estimator {
namespace {

/// A row holds for what fits all that it names.
struct SlowKernels {
  std::string what;
  std::optional<std::vector<std::string>> kernels;
  std::optional<std::vector<Framework>> frameworks;
  std::optional<std::string> launched;
  bool strided = false;
  std::optional<int64_t> width_at_most;
  std::optional<std::vector<std::string>> dtypes;
  std::optional<std::vector<std::string>> other_dtypes;
  double memory_share = 1;
  std::optional<double> channel_elements_per_second;
  std::optional<std::string> measured_on;
  std::string source;

  bool holds_for(const OperatorRecord& kernel,
                 std::optional<Framework> of,
                 std::string_view launch) const {
    return (!strided || kernel.is_strided) && (!width_at_most || is_narrow(kernel)) &&
           (!frameworks || (of && contains(*frameworks, *of))) &&
           (!launched || launch.find(*launched) != launch.npos) &&
           (!dtypes || contains(*dtypes, kernel.dtype)) &&
           (!other_dtypes || contains(*other_dtypes, kernel.other_dtype)) &&
           (!kernels || contains(*kernels, kernel.name));
  }

 private:
  bool is_narrow(const OperatorRecord& kernel) const {
    return !kernel.shapes.empty() && !kernel.shapes[0].empty() &&
           kernel.shapes[0].back() <= *width_at_most;
  }
};
template <class Visitor>
void visit_fields(Visitor& visit, SlowKernels& row) {
  visit("what", row.what, "in words");
  visit("kernels", row.kernels, "names of operators or kernels; empty: any");
  visit("frameworks", row.frameworks, "whose runs it is of; empty: any");
  visit("launched", row.launched, "part of the name of the kernel itself; empty: any");
  visit("strided", row.strided, "only where inputs do not fill memory in the same order");
  visit("width_at_most", row.width_at_most, "of the first input's rows; empty: any");
  visit("dtypes", row.dtypes, "of the first input; empty: any");
  visit("other_dtypes", row.other_dtypes, "of another input; empty: any or none");
  visit("memory_share", row.memory_share, "of the memory's rate that they reach");
  visit("channel_elements_per_second",
        row.channel_elements_per_second,
        "of a kernel that gives each channel of the first input, [samples, channels, ...], to one "
        "block: elements of a block; empty: no such");
  visit("measured_on", row.measured_on, "the GPU of which it is the share; empty: any");
  visit("source", row.source, "where it was read");
}

/// Products of a rank's experts that one call issues.
struct GroupedProducts {
  double overlap_exponent = 1;
  std::string source;
  double torch_share = 1;
  std::string torch_source;
};
template <class Visitor>
void visit_fields(Visitor& visit, GroupedProducts& grouped) {
  visit("overlap_exponent",
        grouped.overlap_exponent,
        "p of (compute^p + memory^p)^(1/p): 1: one after the other, large: side by side");
  visit("source", grouped.source, "where it was read");
  visit("torch_share", grouped.torch_share, "of cuBLAS's rate that torch._grouped_mm reaches");
  visit("torch_source", grouped.torch_source, "where it was read");
}

struct KernelTables {
  std::vector<SlowKernels> slow_kernels;
  GroupedProducts grouped;
};
template <class Visitor>
void visit_fields(Visitor& visit, KernelTables& tables) {
  visit("slow_kernels", tables.slow_kernels, "the first row that holds counts");
  visit("grouped_products", tables.grouped, "of experts");
}

const KernelTables& kernel_tables() {
  static const auto document =
      read_document<KernelTables>(onerank_data::kernels_json, "kernels.json");
  return document;
}

const SlowKernels* find_row(const OperatorRecord& kernel,
                            std::optional<Framework> framework,
                            std::string_view launched) {
  for (const SlowKernels& row : kernel_tables().slow_kernels) {
    if (row.holds_for(kernel, framework, launched)) return &row;
  }
  return nullptr;
}

double stream_rate(const Gpu& gpu) {
  return gpu.memory_bandwidth_bytes_per_second * memory_rate(gpu).share;
}

double share_on(const Gpu& gpu, const SlowKernels& row) {
  if (!row.measured_on || *row.measured_on == gpu.id) return row.memory_share;
  const double memory = stream_rate(gpu) / stream_rate(measured_gpu(*row.measured_on));
  const double work = multiprocessors_over(gpu, *row.measured_on);
  return 1 / (1 + (1 / row.memory_share - 1) * memory / work);
}

/// How many kernels one call issues that run at the same time.
int64_t group_of(const OperatorRecord& kernel, const ComputeTarget& target) {
  return kernel.name.starts_with("te::grouped_") ? target.experts : 1;
}

/// `count` products that run at the same time: a batch of them, whose two operands come last; in 8
/// bits, one with as many rows, since rates of batches are unknown there.
OperatorRecord as_one(const OperatorRecord& product, int64_t count) {
  OperatorRecord all = product;
  if (is_scaled_type(product.dtype)) {
    all.shapes[0][0] *= count;
    return all;
  }
  for (std::size_t i = all.shapes.size() - 2; i < all.shapes.size(); ++i) {
    all.shapes[i].insert(all.shapes[i].begin(), count);
  }
  return all;
}

/// 0: it gives no channels to blocks.
double channel_seconds(const OperatorRecord& kernel, const SlowKernels& row) {
  if (!row.channel_elements_per_second || kernel.shapes.empty()) return 0;
  const std::vector<int64_t>& sizes = kernel.shapes[0];
  double elements = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i != 1) elements *= static_cast<double>(sizes[i]);
  }
  return elements / *row.channel_elements_per_second;
}

}  // namespace

MemoryBound memory_bound(const OperatorRecord& kernel,
                         std::optional<Framework> framework,
                         const Gpu& gpu,
                         std::string_view launched) {
  const SlowKernels* row = find_row(kernel, framework, launched);
  if (row == nullptr) return {};
  return {.memory_share = share_on(gpu, *row), .least_seconds = channel_seconds(kernel, *row)};
}

OperatorPrice kernel_price(const OperatorRecord& kernel,
                           const GpuRates& rates,
                           const ComputeTarget& target) {
  const int64_t count = group_of(kernel, target);
  if (count == 1) {
    return operator_price(kernel,
                          rates,
                          target.dtype,
                          memory_bound(kernel, target.framework, target.gpu).memory_share);
  }
  const auto group = static_cast<double>(count);
  OperatorRecord all = as_one(kernel, count);
  all.flops *= group;
  all.bytes = 0;
  OperatorPrice price = operator_price(all, rates, target.dtype);
  const double compute = price.seconds / group;
  const double memory = kernel.bytes / rates.memory_bytes_per_second(kernel.bytes);
  const double exponent = kernel_tables().grouped.overlap_exponent;
  price.seconds = std::pow(std::pow(compute, exponent) + std::pow(memory, exponent), 1 / exponent);
  if (memory > compute) price.bound = Bound::kMemory;
  return price;
}

OperatorRecord as_batch_of_groups(OperatorRecord kernel) {
  auto& shapes = kernel.shapes;
  const bool is_known = kernel.name == "aten::_grouped_mm" && shapes.size() == 3 &&
                        (kernel.dtype == "BFloat16" || kernel.dtype == "Half") &&
                        shapes[0].size() == 2 && shapes[2].size() == 1 && shapes[2][0] > 0;
  if (!is_known) return kernel;
  const int64_t groups = shapes[2][0];
  if (shapes[1].size() == 3) {
    shapes = {{groups, shapes[0][0] / groups, shapes[0][1]}, shapes[1]};
  } else if (shapes[1].size() == 2) {
    const int64_t part = shapes[0][1] / groups;
    shapes = {{groups, shapes[0][0], part}, {groups, part, shapes[1][1]}};
  }
  kernel.flops /= kernel_tables().grouped.torch_share;
  return kernel;
}

/// All kernels of an operator are one here. A product takes as long in whatever loop:
/// TransformerEngine asks cuBLAS how to run each.
double issue_seconds(const OperatorRecord& kernel, const LaunchCost& launch) {
  if (is_matmul(kernel)) return launch.host_call_seconds;
  return launch.call_seconds(/*operators=*/1, /*is_of_operator=*/true, kernel.name);
}

}  // namespace estimator
