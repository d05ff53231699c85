#include "estimator/resolve/subject_rules.h"

namespace estimator {

// As Megatron-LM's apply_determinism_to_args asks for (megatron/training/determinism.py).
void check_determinism(Rules& rules) {
  const TrainingConfig& t = rules.plan().training;
  if (!t.deterministic_mode) {
    rules.require(!t.fill_uninitialized_memory.value_or(false),
                  "PyTorch fills new memory only under deterministic algorithms",
                  "training.fill_uninitialized_memory without training.deterministic_mode",
                  "add --deterministic-mode, or leave it out");
    return;
  }
  rules.require(!rules.plan().parallelism.tp_comm_overlap,
                "user buffers are not deterministic",
                "training.deterministic_mode with parallelism.tp_comm_overlap",
                "leave one of them out");
  rules.require(t.cross_entropy_fusion == CrossEntropyFusion::kNone,
                "the fused cross-entropy is not deterministic",
                fmt::format("training.deterministic_mode with training.cross_entropy_fusion = {}",
                            to_string(t.cross_entropy_fusion)),
                "use training.cross_entropy_fusion = none");
}

}  // namespace estimator
