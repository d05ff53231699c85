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

/// row_linear and column_linear in nanotron/parallel/tensor_parallel/functional.py.
void check_asynchronous_linear(Rules& rules) {
  const ParallelConfig& p = rules.plan_.parallelism;
  const Framework framework = rules.plan_.training.framework;
  const auto check = [&](bool asked, const std::string& key) {
    if (!asked) return;
    rules.require(traits_of(framework).asynchronous_linear,
                  "only nanotron's linear layers gather their input in this way",
                  fmt::format("{}, training.framework = {}", key, to_string(framework)),
                  "leave it out, or use --framework nanotron");
    rules.require(
        p.sequence_parallel,
        "nanotron gathers inputs only in its mode REDUCE_SCATTER, which splits the sequence",
        key + " without parallelism.sequence_parallel",
        "add --sequence-parallel, or leave it out");
  };
  check(p.tp_linear_async_communication, "parallelism.tp_linear_async_communication");
  check(p.tp_recompute_allgather, "parallelism.tp_recompute_allgather");
}

}  // namespace

void check_layers(Rules& rules) {
  check_parallel_residual(rules);
  check_asynchronous_linear(rules);
}

}  // namespace estimator
