#include <fmt/format.h>

#include "estimator/plan/frameworks.h"
#include "estimator/plan/subject_rules.h"

namespace estimator {
namespace {

void check_parallel_residual(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  const Framework framework = rules.plan().training.framework;
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
  const ParallelConfig& p = rules.plan().parallelism;
  const Framework framework = rules.plan().training.framework;
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

/// What multi-token prediction is built for here, of what Megatron-LM can do.
void check_around_prediction(Rules& rules) {
  const ParallelConfig& p = rules.plan().parallelism;
  const auto require =
      [&](bool holds, const char* what, const std::string& where, const char* help) {
        rules.require(holds,
                      fmt::format("multi-token prediction does not work with {} yet", what),
                      "model.mtp_num_layers, " + where,
                      fmt::format("{}, or leave out --mtp-num-layers", help));
      };
  require(p.context == 1,
          "context parallelism",
          fmt::format("parallelism.context = {}", p.context),
          "use a context parallel size of 1");
  require(!p.divides_gradients(),
          "FSDP2",
          fmt::format("parallelism.zero_stage = {}", p.zero_stage),
          "use --use-distributed-optimizer (ZeRO stage 1)");
  require(!p.defer_embedding_wgrad_compute,
          "weight gradients of the output layer that wait for the flush",
          "parallelism.defer_embedding_wgrad_compute",
          "leave out --defer-embedding-wgrad-compute");
  require(!p.tp_comm_overlap,
          "user buffers",
          "parallelism.tp_comm_overlap",
          "leave out --tp-comm-overlap");
}

void check_prediction(Rules& rules) {
  const ModelConfig& m = rules.plan().model;
  if (!m.predicts_more_tokens()) return;
  const Framework framework = rules.plan().training.framework;
  rules.require(traits_of(framework).multi_token_prediction,
                "multi-token prediction is not supported for this framework",
                "model.mtp_num_layers, training.framework = " + to_string(framework),
                "use training.framework = megatron-lm or plain");
  // validate_args in megatron/training/arguments.py
  rules.require(m.position_embedding != PositionEmbedding::kLearnedAbsolute,
                "Megatron-LM predicts no more tokens of sequences with learned positions",
                "model.mtp_num_layers, model.position_embedding = learned_absolute",
                "use --position-embedding-type rope");
  check_around_prediction(rules);
}

}  // namespace

void check_layers(Rules& rules) {
  check_parallel_residual(rules);
  check_prediction(rules);
  check_asynchronous_linear(rules);
}

}  // namespace estimator
