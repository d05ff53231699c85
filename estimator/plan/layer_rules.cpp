#include <fmt/format.h>

#include "estimator/plan/frameworks.h"
#include "estimator/plan/subject_rules.h"

namespace estimator {
namespace {

void check_parallel_residual(Rules& rules) {
  const ModelConfig& m = rules.plan_.model;
  const Framework framework = rules.plan_.training.framework;
  rules.require(m.parallel_residual || !m.tied_layernorm,
                "one norm for attention and MLP needs both to read the same input",
                "model.tied_layernorm without model.parallel_residual",
                "add --parallel-residual, or leave out --tied-layernorm");
  if (!m.parallel_residual) return;
  rules.require(traits_of(framework).parallel_residual,
                "attention and MLP in parallel are not supported for this framework",
                "model.parallel_residual, training.framework = " + to_string(framework),
                "use training.framework = megatron-deepspeed (GPT-NeoX) or plain");
  rules.require(!m.has_experts(),
                "attention and MLP in parallel do not work with experts yet",
                fmt::format("model.parallel_residual, model.num_experts = {}", m.num_experts),
                "leave out one of them");
}

}  // namespace

void check_layers(Rules& rules) { check_parallel_residual(rules); }

}  // namespace estimator
