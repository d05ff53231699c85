// Values that the user gives in place of values that no kernel computes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/base/option.h"

namespace sim {

// The numbers, as `--assume NAME=VALUE` names them.
inline constexpr const char* kLoss = "loss";
inline constexpr const char* kGradientNorm = "grad-norm";
inline constexpr const char* kFoundInf = "found-inf";
inline constexpr const char* kAssumedNames[] = {kLoss, kGradientNorm, kFoundInf};

struct AssumedNumber {
  std::string name;  ///< of kAssumedNames
  double value = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, AssumedNumber& number) {
  visit("name", number.name, "what it is");
  visit("value", number.value, "its value");
}

struct AssumedValues {
  std::vector<AssumedNumber> numbers;
  /// Tokens of the fullest expert, which is the first one, divided by the mean of all experts; 1 is
  /// a balanced router. Empty: no router is assumed.
  std::optional<double> fullest_expert;
};
template <class Visitor>
void visit_fields(Visitor& visit, AssumedValues& values) {
  visit("numbers", values.numbers, "single numbers");
  visit("fullest_expert", values.fullest_expert, "tokens of the first expert, over the mean");
}

}  // namespace sim
