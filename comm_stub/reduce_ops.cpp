#include "comm_stub/reduce_ops.h"

#include <array>
#include <stdexcept>

namespace comm_stub {
namespace {

using c10d::ReduceOp;

void sum(const at::Tensor& x, const ReduceOp&, int64_t group_size) {
  if (x.scalar_type() != at::kBool) x.mul_(group_size);
}

void unchanged(const at::Tensor&, const ReduceOp&, int64_t) {}

void product(const at::Tensor& x, const ReduceOp&, int64_t group_size) {
  if (x.scalar_type() != at::kBool) x.pow_(group_size);
}

void exclusive_or(const at::Tensor& x, const ReduceOp&, int64_t group_size) {
  if (group_size % 2 == 0) x.zero_();
}

void scaled_sum(const at::Tensor& x, const ReduceOp& op, int64_t group_size) {
  const auto& factor = static_cast<const c10d::NCCLPreMulSumSupplement&>(*op.supplement_);
  if (factor.tensor_factor.defined()) {
    x.mul_(factor.tensor_factor).mul_(group_size);
  } else {
    x.mul_(factor.double_factor * static_cast<double>(group_size));
  }
}

/// Over members that all hold x.
struct Rule {
  ReduceOp::RedOpType op;
  const char* name;
  bool in_nccl;
  void (*apply)(const at::Tensor& x, const ReduceOp& op, int64_t group_size);
};

constexpr std::array kRules = {Rule{ReduceOp::SUM, "SUM", true, sum},
                               Rule{ReduceOp::AVG, "AVG", true, unchanged},
                               Rule{ReduceOp::PRODUCT, "PRODUCT", true, product},
                               Rule{ReduceOp::MIN, "MIN", true, unchanged},
                               Rule{ReduceOp::MAX, "MAX", true, unchanged},
                               Rule{ReduceOp::BAND, "BAND", false, unchanged},
                               Rule{ReduceOp::BOR, "BOR", false, unchanged},
                               Rule{ReduceOp::BXOR, "BXOR", false, exclusive_or},
                               Rule{ReduceOp::PREMUL_SUM, "PREMUL_SUM", true, scaled_sum}};

const Rule* find_rule(const ReduceOp& op) {
  for (const Rule& rule : kRules) {
    if (rule.op == op.op_) return &rule;
  }
  return nullptr;
}

bool has_type(const Rule& rule, at::ScalarType type) {
  if (at::isFloat8Type(type)) return false;
  if (rule.op == ReduceOp::AVG) return type != at::kBool;
  if (rule.op == ReduceOp::PREMUL_SUM) return at::isFloatingType(type);
  if (!rule.in_nccl) return at::isIntegralType(type, /*includeBool=*/true);
  return true;
}

}  // namespace

void check_reduce_op(const Checks& checks, const ReduceOp& op, const at::Tensor& tensor) {
  const Rule* rule = find_rule(op);
  if (rule == nullptr) checks.refuse("reduce operation {} is unknown", static_cast<int>(op.op_));
  if (!rule->in_nccl && !tensor.is_cpu()) {
    checks.refuse("NCCL does not support ReduceOp {}", rule->name);
  }
  if (!has_type(*rule, tensor.scalar_type())) {
    checks.refuse(
        "ReduceOp {} does not support dtype {}", rule->name, c10::toString(tensor.scalar_type()));
  }
  if (rule->op == ReduceOp::PREMUL_SUM && op.supplement_ == nullptr) {
    checks.refuse("ReduceOp PREMUL_SUM has no factor");
  }
}

void reduce_copies(const at::Tensor& tensor, const ReduceOp& op, int64_t group_size) {
  const Rule* rule = find_rule(op);
  if (rule == nullptr) throw std::logic_error("reduce_copies: the operation was not checked");
  rule->apply(tensor, op, group_size);
}

}  // namespace comm_stub
