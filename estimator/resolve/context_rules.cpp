#include "estimator/resolve/subject_rules.h"

#include <algorithm>
#include <numeric>

#include "estimator/plan/frameworks.h"

namespace estimator {
namespace {

std::string where(const Plan& plan, const std::string& key, const std::string& value) {
  return fmt::format("parallelism.context = {}, {} = {}", plan.parallelism.context, key, value);
}

/// Megatron-LM's own attention and TransformerEngine's unfused one refuse context ranks
/// (megatron/core/transformer/dot_product_attention.py; get_attention_backend in
/// transformer_engine/pytorch/attention/dot_product_attention/utils.py).
void check_attention(Rules& rules) {
  const Plan& plan = rules.plan();
  const TrainingConfig& t = plan.training;
  rules.require(
      traits_of(t.framework).transformer_engine &&
          t.transformer_impl == TransformerImpl::kTransformerEngine,
      "context parallelism is supported only for TransformerEngine's attention",
      where(plan, "training.framework", to_string(t.framework)) +
          ", training.transformer_impl = " + to_string(t.transformer_impl),
      "run the program itself under onerank exec, or use training.framework = megatron-lm "
      "with transformer_engine");
  rules.require(t.attention != Attention::kUnfused,
                "unfused attention does not work with context parallelism",
                where(plan, "training.attention", to_string(t.attention.value())),
                "use training.attention = flash or fused");
  constexpr int64_t kWidthMultiple = 8;  // of AttnFuncWithCPAndKVP2P and its like
  rules.require(plan.model.kv_channels % kWidthMultiple == 0,
                "context parallelism needs a head width that is a multiple of 8",
                where(plan, "model.kv_channels", std::to_string(plan.model.kv_channels)),
                fmt::format("use {}", round_up(plan.model.kv_channels, kWidthMultiple)));
}

/// Two chunks for each rank, in each of which the tensor ranks have equal parts.
void check_sequence(Rules& rules) {
  const Plan& plan = rules.plan();
  const ParallelConfig& p = plan.parallelism;
  const int64_t chunks = 2 * p.context;
  const int64_t parts = p.sequence_parallel ? std::lcm(chunks, p.context * p.tensor) : chunks;
  const int64_t sequence = plan.sequence_length();
  rules.require(sequence % parts == 0,
                "the sequence does not divide among the context ranks",
                fmt::format("training.sequence_length = {}, parallelism.context = {}, tensor = {}",
                            sequence,
                            p.context,
                            p.tensor),
                fmt::format("use a sequence of {}", round_up(sequence, parts)));
}

void check_exchange(Rules& rules) {
  const Plan& plan = rules.plan();
  const ParallelConfig& p = plan.parallelism;
  const std::string kind = to_string(p.context_comm);
  rules.require(p.context_comm == ContextComm::kP2p || p.context_comm == ContextComm::kAllToAll,
                fmt::format("the context exchange {} is not supported yet", kind),
                where(plan, "parallelism.context_comm", kind),
                "use p2p or a2a, or run the program itself under onerank exec");
  if (p.context_comm != ContextComm::kAllToAll) return;
  const int64_t groups = std::max<int64_t>(1, plan.model.num_query_groups / p.tensor);
  rules.require(groups % p.context == 0,
                "a2a: the key/value heads of a tensor rank do not divide among the context ranks",
                fmt::format("model.num_query_groups = {}, parallelism.tensor = {}, context = {}",
                            plan.model.num_query_groups,
                            p.tensor,
                            p.context),
                "use context_comm = p2p",
                {{"a context size of {} (or context_comm = p2p)",
                  "parallelism.context",
                  divisors_near(groups, p.context)}});
}

}  // namespace

void check_context(Rules& rules) {
  if (rules.plan().parallelism.context == 1) return;
  check_attention(rules);
  check_sequence(rules);
  check_exchange(rules);
}

}  // namespace estimator
