// What the user says of values that only kernels would know: the loss, the gradients' norm, whether
// there was an overflow, how many tokens each expert of a mixture gets.
//
// An assumed value is put where the operator that would have computed it leaves its result: for a
// router, the experts that each token takes. From there it goes the way of every known value:
// through copies, collectives and operators, to the host. Where that way is too long (the choices
// are larger than what is followed), the operators that count the choices get what they would have
// counted.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "estimator/profile/program_record.h"
#include "sim/exec/assumed_values.h"
#include "sim/exec/virtual_gpu_control.h"

namespace sim {

/// `total` tokens on `experts` experts: the first has `fullest` times the mean (at most all), the
/// others share the rest evenly. The sum is `total`.
std::vector<int64_t> tokens_of_experts(int64_t total, int64_t experts, double fullest);

/// Says that an operator computes what may be assumed.
struct AssumptionRule;
/// Null for most operators.
const AssumptionRule* assumption_rule_of(const at::RecordFunction& function);

/// Thread-safe.
class Assumptions {
 public:
  explicit Assumptions(AssumedValues values) : values_(std::move(values)) {}

  /// A call of an operator that computes what may be assumed, as its inputs told it.
  struct Call {
    const char* name = nullptr;             ///< what it computes
    int64_t experts = 0;                    ///< that a router chooses from
    std::optional<int64_t> counted_tokens;  ///< of a router
    at::Tensor in_place;                    ///< the result, where that is an input
  };
  /// To be called while the operator's inputs are there: when it starts.
  std::unique_ptr<Call> operator_started(const at::RecordFunction& function,
                                         const AssumptionRule& rule) const;
  /// Puts an assumed value into the operator's result. What is known of it already is overwritten.
  void operator_finished(const at::RecordFunction& function,
                         const Call& call,
                         const VirtualGpu& gpu);

  /// What was assumed, and where.
  std::vector<estimator::AssumedRecord> records() const;

 private:
  void assume_number(const at::RecordFunction& function, const Call& call, const VirtualGpu& gpu);
  void assume_choices(const at::RecordFunction& function, const Call& call, const VirtualGpu& gpu);
  void assume_counts(const at::RecordFunction& function, const Call& call, const VirtualGpu& gpu);
  void note(const char* name, const std::string& value, const at::RecordFunction& function);

  const AssumedValues values_;
  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, std::string, std::string>, int64_t> noted_;
};

}  // namespace sim
