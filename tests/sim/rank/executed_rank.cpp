#include "tests/sim/rank/executed_rank.h"

#include "estimator/resolve/resolve_plan.h"
#include "sim/cli/ranks/rank_process.h"

namespace sim {

estimator::Plan gpt_plan(const estimator::Json& changes) {
  // With expandable segments the allocator splits every block exactly: no slack in the counts.
  estimator::Json tree = estimator::Json::parse(R"({
    "model": {"num_layers": 2, "hidden_size": 1024, "num_attention_heads": 16, "vocab_size": 1024,
              "max_position_embeddings": 512},
    "cluster": {"gpu": "a100", "nodes": 1, "gpus_per_node": 1},
    "training": {"micro_batch_size": 4, "global_batch_size": 16, "sequence_length": 512,
                 "dtype": "fp16", "attention": "unfused"},
    "memory": {"allocator": "expandable_segments:True"}})");
  tree.merge_patch(changes);
  return estimator::resolve_plan(tree, {});
}

estimator::RankProfile execute(const estimator::Plan& plan, int64_t rank) {
  const Progress::Display silent{.write = [](std::string_view) {}};
  return run_ranks(plan, {.ranks = {rank}}, current_environment(), silent).front();
}

}  // namespace sim
