#include "estimator/compute/executed_kernels.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "estimator/hardware/database.h"

namespace onerank_data {
extern const std::string_view fused_kernels_json;
}

namespace estimator {
namespace {

struct FusedOperator {
  Dialect dialect = Dialect::kMegatronLm;
  std::string module_kind;
  std::optional<Direction> direction;
  std::string operator_name;
  std::vector<int64_t> dims;
  bool square = false;
  std::optional<std::string> beside;
  double bytes_share = 0, memory_share = 1;
  std::string kernel;
};
template <class Visitor>
void visit_fields(Visitor& visit, FusedOperator& rule) {
  visit("dialect", rule.dialect, "whose kernel");
  visit("module_kind", rule.module_kind, "where");
  visit("direction", rule.direction, "empty: any");
  visit("operator", rule.operator_name, "that the fused kernel does");
  visit("dims", rule.dims, "of its inputs");
  visit("square", rule.square, "the first input's last two dims are equal");
  visit("beside", rule.beside, "only where this operator runs too, on an equal first input");
  visit("bytes_share", rule.bytes_share, "of its bytes that the kernel moves; 0: none");
  visit("memory_share", rule.memory_share, "of the memory's rate that the kernel reaches");
  visit("kernel", rule.kernel, "the kernel, and where it is");
}

const std::vector<FusedOperator>& rules() {
  static const auto rows =
      read_database<FusedOperator>(onerank_data::fused_kernels_json, "fused_kernels.json");
  return rows;
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
                             Dialect dialect,
                             const std::vector<OperatorRecord>& operators) {
  for (const FusedOperator& rule : rules()) {
    if (rule.dialect == dialect && rule.operator_name == record.name &&
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
                                             Dialect dialect) {
  std::vector<ExecutedKernel> kernels;
  for (const OperatorRecord& record : operators) {
    const FusedOperator* rule = rule_of(record, dialect, operators);
    if (rule == nullptr) {
      kernels.push_back({record});
    } else if (rule->bytes_share > 0) {
      kernels.push_back({record, rule->memory_share});
      kernels.back().record.bytes *= rule->bytes_share;
    }
  }
  return kernels;
}

}  // namespace estimator
