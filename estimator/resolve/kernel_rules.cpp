#include <optional>

#include "estimator/plan/attention_choice.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {

void check_flash_attention(Rules& rules) {
  const Plan& plan = rules.plan();
  if (plan.training.attention == Attention::kUnfused) return;
  const std::string name = to_string(plan.training.attention.value());
  if (const std::optional<FlashObstacle> obstacle = find_flash_obstacle(plan)) {
    rules.require(false,
                  name + " attention " + obstacle->what,
                  fmt::format("training.attention = {}, {}", name, obstacle->where),
                  "use training.attention = unfused");
  }
}

/// The other frameworks have an RMSNorm of their own.
void check_norm_fusion(Rules& rules) {
  const TrainingConfig& t = rules.plan().training;
  if (t.rms_norm_fusion) return;
  rules.require(t.framework == Framework::kTorchtitan || t.framework == Framework::kPlain,
                "whose RMSNorm is not PyTorch's",
                fmt::format("training.rms_norm_fusion = false, training.framework = {}",
                            to_string(t.framework)),
                "leave it out, or use --framework torchtitan or plain");
}

}  // namespace estimator
