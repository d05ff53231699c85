#include "tests/estimator/compose/piece_plans.h"

#include "estimator/resolve/resolve_plan.h"

namespace estimator {

Plan piece_base(const Json& changes) {
  Json tree = Json::parse(R"({
    "model": {"num_layers": 24, "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 1000,
              "max_position_embeddings": 128},
    "cluster": {"gpu": "h100-sxm", "nodes": 1, "gpus_per_node": 8},
    "parallelism": {"pipeline": 4, "zero_stage": 1},
    "training": {"micro_batch_size": 1, "global_batch_size": 64, "sequence_length": 128}})");
  tree.merge_patch(changes);
  return resolve_plan(tree, {});
}

}  // namespace estimator
