// Applies values that the user gives in place of values that only kernels could compute: the loss,
// the gradient norm, whether there was an overflow, how many tokens each expert gets.
//
// An assumed value is written to the result of the operator that would have computed it; for a
// router that is the choice of experts for each token. From there it is followed like every known
// value: through copies, collectives and operators, to the host. If the choices are too large to be
// followed, the results of the operators that count the choices are set instead.
//
// What a program checks (`assert (x >= 0).all()`) is assumed to be so, where nobody knows it.
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
#include "sim/exec/program/assumed_values.h"
#include "sim/exec/program/virtual_gpu_control.h"

namespace sim {

/// Divides `total` tokens among `experts` experts: the first gets `fullest` times the mean (at most
/// all tokens), the others share the rest evenly. The sum is `total`.
std::vector<int64_t> tokens_of_experts(int64_t total, int64_t experts, double fullest);

/// Describes an operator whose result may be assumed.
struct AssumptionRule;
/// Null for most operators.
const AssumptionRule* assumption_rule_of(const at::RecordFunction& function);

/// Thread-safe.
class Assumptions {
 public:
  explicit Assumptions(AssumedValues values) : values_(std::move(values)) {}

  /// A call of an operator whose result may be assumed, with what its inputs say.
  struct Call {
    const char* name = nullptr;             ///< name of the assumed value
    int64_t experts = 0;                    ///< number from which a router chooses
    std::optional<int64_t> counted_tokens;  ///< of an operator that counts choices
    at::Tensor in_place;                    ///< the result, if that is an input
  };
  /// Must be called when the operator starts, while its inputs exist. Null where its result is not
  /// assumed.
  std::unique_ptr<Call> operator_started(const at::RecordFunction& function,
                                         const AssumptionRule& rule,
                                         const VirtualGpu& gpu);
  /// Writes an assumed value into the operator's result, even if the result is already known.
  void operator_finished(const at::RecordFunction& function,
                         const Call& call,
                         const VirtualGpu& gpu);

  /// A kernel of an extension, `chooser`, has marked the experts of each token: a truth value for
  /// each token and expert, from `map` on. Marks them as the policy says, if there is one.
  struct Routes {
    uint64_t map = 0;
    int64_t tokens = 0;
    int64_t experts = 0;
    int64_t choices = 0;  ///< of each token
    const char* chooser = nullptr;
  };
  void experts_chosen(const Routes& routes, const VirtualGpu& gpu);

  /// What was assumed, and where.
  std::vector<estimator::AssumedRecord> records() const;

 private:
  void assume_check(const at::RecordFunction& function, const VirtualGpu& gpu);
  void assume_number(const at::RecordFunction& function, const Call& call, const VirtualGpu& gpu);
  void assume_choices(const at::RecordFunction& function, const Call& call, const VirtualGpu& gpu);
  void assume_counts(const at::RecordFunction& function, const Call& call, const VirtualGpu& gpu);
  /// The experts of `tokens` tokens with `choices` each, by token and choice; noted as those of
  /// `chooser`. There must be a policy.
  std::vector<double> chosen_experts(int64_t tokens,
                                     int64_t choices,
                                     int64_t experts,
                                     const char* chooser);
  void note(const char* name, const std::string& value, const char* chooser);

  const AssumedValues values_;
  mutable std::mutex mutex_;
  std::map<std::tuple<std::string, std::string, std::string>, int64_t> noted_;
};

}  // namespace sim
