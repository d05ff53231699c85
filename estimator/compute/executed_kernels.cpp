#include "estimator/compute/executed_kernels.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "estimator/base/database.h"

namespace onerank_data {
extern const std::string_view fused_kernels_json;
}

namespace estimator {
namespace {

struct FusedOperator {
  Framework framework = Framework::kMegatronLm;
  std::string module_kind;
  std::optional<Direction> direction;
  std::string operator_name;
  std::vector<int64_t> dims;
  bool square = false;
  std::optional<std::string> beside;
  double bytes_share = 0;
  std::optional<std::string> rate;
  bool grouped = false;
  std::string kernel;
};
template <class Visitor>
void visit_fields(Visitor& visit, FusedOperator& rule) {
  visit("framework", rule.framework, "whose kernel");
  visit("module_kind", rule.module_kind, "where");
  visit("direction", rule.direction, "empty: any");
  visit("operator", rule.operator_name, "that the fused kernel does");
  visit("dims", rule.dims, "of its inputs");
  visit("square", rule.square, "the first input's last two dims are equal");
  visit("beside", rule.beside, "only where this operator runs too, on an equal first input");
  visit("bytes_share", rule.bytes_share, "of its bytes that the kernel moves; 0: none");
  visit("rate", rule.rate, "one of `rates`; empty: the memory's");
  visit("grouped", rule.grouped, "those of a rank's experts are issued by one call");
  visit("kernel", rule.kernel, "the kernel, and where it is");
}

/// Of kernels that come nowhere near the memory's rate.
struct KernelRate {
  std::string name;
  double memory_share = 1;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, KernelRate& rate) {
  visit("name", rate.name, "what such kernels do");
  visit("memory_share", rate.memory_share, "of the memory's rate that they reach");
  visit("source", rate.source, "where it was read");
}

/// Products of a rank's experts that one call issues.
struct GroupedProducts {
  double overlap_exponent = 1;
  double host_seconds = 0;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, GroupedProducts& grouped) {
  visit("overlap_exponent",
        grouped.overlap_exponent,
        "p of (compute^p + memory^p)^(1/p): 1: one after the other, large: side by side");
  visit("host_seconds", grouped.host_seconds, "that the host takes to issue one of them");
  visit("source", grouped.source, "where it was read");
}

struct FusedKernels {
  std::vector<KernelRate> rates;
  GroupedProducts grouped;
  std::vector<FusedOperator> kernels;
};
template <class Visitor>
void visit_fields(Visitor& visit, FusedKernels& tables) {
  visit("rates", tables.rates, "of slow kernels");
  visit("grouped_products", tables.grouped, "of experts");
  visit("kernels", tables.kernels, "what frameworks run");
}

const FusedKernels& kernel_tables() {
  static const auto document =
      read_document<FusedKernels>(onerank_data::fused_kernels_json, "fused_kernels.json");
  return document;
}

double memory_share(const FusedOperator& rule) {
  if (!rule.rate) return 1;
  const auto& rates = kernel_tables().rates;
  const auto found = std::find_if(
      rates.begin(), rates.end(), [&](const KernelRate& rate) { return rate.name == *rule.rate; });
  if (found == rates.end()) throw std::logic_error("fused_kernels.json: no rate " + *rule.rate);
  return found->memory_share;
}

bool has_dims(const OperatorRecord& record, const std::vector<int64_t>& dims) {
  return std::equal(record.shapes.begin(),
                    record.shapes.end(),
                    dims.begin(),
                    dims.end(),
                    [](const std::vector<int64_t>& shape, int64_t size) {
                      return static_cast<int64_t>(shape.size()) == size;
                    });
}

bool is_square(const OperatorRecord& record) {
  const std::vector<int64_t>& shape = record.shapes.front();
  return shape.size() >= 2 && shape.back() == shape[shape.size() - 2];
}

bool runs_beside(const OperatorRecord& record,
                 std::string_view name,
                 const std::vector<OperatorRecord>& operators) {
  return std::any_of(operators.begin(), operators.end(), [&](const OperatorRecord& other) {
    return other.name == name && other.module_kind == record.module_kind &&
           other.direction == record.direction && !other.shapes.empty() &&
           other.shapes.front() == record.shapes.front();
  });
}

/// Null when the record is a kernel of its own.
const FusedOperator* rule_of(const OperatorRecord& record,
                             Framework framework,
                             const std::vector<OperatorRecord>& operators) {
  for (const FusedOperator& rule : kernel_tables().kernels) {
    if (rule.framework == framework && rule.operator_name == record.name &&
        rule.module_kind == record.module_kind &&
        (!rule.direction || *rule.direction == record.direction) && has_dims(record, rule.dims) &&
        (!rule.square || is_square(record)) &&
        (!rule.beside || runs_beside(record, *rule.beside, operators))) {
      return &rule;
    }
  }
  return nullptr;
}

}  // namespace

std::vector<ExecutedKernel> executed_kernels(const std::vector<OperatorRecord>& operators,
                                             Framework framework,
                                             int64_t experts) {
  std::vector<ExecutedKernel> kernels;
  for (const OperatorRecord& record : operators) {
    const FusedOperator* rule = rule_of(record, framework, operators);
    if (rule == nullptr) {
      kernels.push_back({record});
    } else if (rule->bytes_share > 0) {
      kernels.push_back({record, memory_share(*rule), rule->grouped ? experts : 1});
      kernels.back().record.bytes *= rule->bytes_share;
    }
  }
  return kernels;
}

OperatorPrice kernel_price(const ExecutedKernel& kernel, const GpuRates& rates, Dtype plan_dtype) {
  if (kernel.group == 1) {
    return operator_price(kernel.record, rates, plan_dtype, kernel.memory_share);
  }
  const auto group = static_cast<double>(kernel.group);
  OperatorRecord all = kernel.record;  // as a batch of them: the two operands come last
  for (std::size_t i = all.shapes.size() - 2; i < all.shapes.size(); ++i) {
    all.shapes[i].insert(all.shapes[i].begin(), kernel.group);
  }
  all.flops *= group;
  all.bytes = 0;
  OperatorPrice price = operator_price(all, rates, plan_dtype);
  const double compute = price.seconds / group;
  const double memory = kernel.record.bytes / rates.memory_bytes_per_second(kernel.record.bytes);
  const double exponent = kernel_tables().grouped.overlap_exponent;
  price.seconds = std::pow(std::pow(compute, exponent) + std::pow(memory, exponent), 1 / exponent);
  if (memory > compute) price.bound = Bound::kMemory;
  return price;
}

double issue_seconds(const ExecutedKernel& kernel, const LaunchCost& launch) {
  const double call = launch.host_seconds(kernel.record.direction);
  if (kernel.group == 1) return call;
  return call / static_cast<double>(kernel.group) + kernel_tables().grouped.host_seconds;
}

}  // namespace estimator
