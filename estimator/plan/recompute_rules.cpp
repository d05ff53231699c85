#include "estimator/plan/subject_rules.h"

#include "estimator/base/text.h"
#include "estimator/plan/frameworks.h"

namespace estimator {
namespace {

constexpr std::size_t kMostDigits = 9;

bool is_layer_count(const std::string& option) {
  return option.size() <= kMostDigits && is_digits(option);
}

}  // namespace

void check_recompute(Rules& rules) {
  const TrainingConfig& t = rules.plan_.training;
  if (t.selective_ac_option == kSelectiveByOperator) return;
  const std::string option =
      fmt::format("training.selective_ac_option = {}", t.selective_ac_option);
  rules.require(traits_of(t.framework).selective_by_operator,
                "only TorchTitan chooses what selective recompute means",
                fmt::format("{}, training.framework = {}", option, to_string(t.framework)),
                "leave it out, or use --framework torchtitan");
  rules.require(t.recompute == Recompute::kSelective,
                "the key is only for selective recompute",
                fmt::format("{}, training.recompute = {}", option, to_string(t.recompute)),
                "add --recompute-granularity selective, or leave it out");
  rules.require(is_layer_count(t.selective_ac_option),
                "selective recompute is by operator or of every Nth layer",
                option,
                "use op, or a number of layers: 2 recomputes every second one, 0 all");
}

}  // namespace estimator
