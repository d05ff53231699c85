// The shard under FSDP2 against PyTorch's own fully_shard, and without it against
// DistributedDataParallel and one GPU alone: a program of the same operators, run by `onerank
// exec`, and the plan, run by `onerank run`, fill the same allocator.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "estimator/base/fields.h"
#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

using estimator::Json;
using estimator::RankProfile;

struct ShardedCase {
  const char* name;
  int64_t ranks;
  int64_t zero_stage;
  int64_t micro_batches;
  std::string recompute = "none";  ///< none, full, or TorchTitan's selective_ac_option
  /// Those in which PyTorch's reducer does not make new buckets: it does so once, after the first
  /// backward, and how long the old ones stay is not the same in each run.
  std::vector<int> iterations = {0, 1};
  int64_t replicas = 1;
  int64_t tensor = 1;
  std::vector<std::string> words = {};  ///< tied; always: fsdp_reshard_after_forward
  bool has(const std::string& word) const {
    return std::find(words.begin(), words.end(), word) != words.end();
  }
};

void PrintTo(const ShardedCase& c, std::ostream* stream) { *stream << c.name; }

class FullyShardedPrograms : public ExecProgram, public testing::WithParamInterface<ShardedCase> {
 protected:
  Json plan() const {
    const ShardedCase& c = GetParam();
    Json plan = Json::parse(R"({
      "model": {"num_layers": 4, "hidden_size": 1024, "ffn_hidden_size": 2816,
                "num_attention_heads": 16, "num_query_groups": 4, "vocab_size": 32000,
                "max_position_embeddings": 2048, "normalization": "RMSNorm",
                "activation": "swiglu", "position_embedding": "rope", "add_bias_linear": false,
                "tie_embeddings": false, "hidden_dropout": 0, "attention_dropout": 0},
      "cluster": {"gpu": "h100-sxm"},
      "training": {"micro_batch_size": 1, "sequence_length": 2048, "dtype": "bf16",
                   "framework": "torchtitan", "attention": "flash"}})");
    plan["cluster"]["gpus_per_node"] = std::min<int64_t>(c.ranks, 8);
    plan["cluster"]["nodes"] = (c.ranks + 7) / 8;
    plan["parallelism"]["zero_stage"] = c.zero_stage;
    plan["parallelism"]["num_distributed_optimizer_instances"] = c.replicas;
    plan["parallelism"]["tensor"] = c.tensor;
    plan["parallelism"]["sequence_parallel"] = c.tensor > 1;
    plan["parallelism"]["reshard_last_unit"] = c.has("always");
    plan["model"]["tie_embeddings"] = c.has("tied");
    plan["training"]["global_batch_size"] = c.ranks / c.tensor * c.micro_batches;
    if (c.recompute == "none" || c.recompute == "full") {
      plan["training"]["recompute"] = c.recompute;
    } else {
      plan["training"]["recompute"] = "selective";
      plan["training"]["selective_ac_option"] = c.recompute;
    }
    return plan;
  }

  RankProfile shard() {
    const ProgramResult result =
        run({"run", write("plan.json", plan().dump()), "--output", path("shard.json")});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return estimator::read_rank_profile(read("shard.json"), "shard.json");
  }

  RankProfile program() {
    const ShardedCase& c = GetParam();
    std::vector<std::string> arguments = {"4", "1024", "2816", "16", "4", "32000", "2048"};
    arguments.insert(arguments.end(),
                     {std::to_string(c.micro_batches),
                      std::to_string(c.zero_stage),
                      c.recompute,
                      std::to_string(c.replicas),
                      std::to_string(c.tensor)});
    arguments.insert(arguments.end(), c.words.begin(), c.words.end());
    const ProgramResult result =
        run_program("fsdp2_shard.py",
                    {"--gpu", "h100-sxm", "--world-size", std::to_string(c.ranks)},
                    arguments);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return profile(0);
  }

  static estimator::MemoryReading peak_of(const RankProfile& profile, const std::string& phase) {
    for (const auto& record : profile.phases) {
      if (record.name == phase) return record.peak;
    }
    ADD_FAILURE() << "no phase " << phase;
    return {};
  }
};

TEST_P(FullyShardedPrograms, FillTheAllocatorAsTheShardDoes) {
  const RankProfile ours = shard(), theirs = program();
  // The allocator leaves up to 1 MiB of a block unsplit; which block a tensor gets depends on
  // scalars and token numbers that the program holds at other times than the shard.
  constexpr int64_t kUnsplit = 3 << 20;
  constexpr int64_t kOtherBlock = 12 << 20;
  for (const int iteration : GetParam().iterations) {
    const std::string phase = "iteration_" + std::to_string(iteration) + ".forward_backward";
    SCOPED_TRACE(phase);
    const auto of_shard = peak_of(ours, phase), of_program = peak_of(theirs, phase);
    EXPECT_GT(of_program.allocated_bytes, 500 << 20);  // something was compared
    EXPECT_LE(std::abs(of_shard.allocated_bytes - of_program.allocated_bytes), kUnsplit);
    EXPECT_LE(std::abs(of_shard.reserved_bytes - of_program.reserved_bytes), kOtherBlock);
  }
}

// With segments that expand, which leave no part of a block unsplit.
class WholePrograms : public FullyShardedPrograms {};

TEST_P(WholePrograms, AllocateAsTheShardDoes) {
  environment_["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True";
  const RankProfile ours = shard(), theirs = program();
  constexpr int64_t kTokens = 2 * 2048 * 8;  // the program holds its tokens to the iteration's end
  for (const int iteration : GetParam().iterations) {
    const std::string phase = "iteration_" + std::to_string(iteration) + ".forward_backward";
    EXPECT_LE(
        std::abs(peak_of(ours, phase).allocated_bytes - peak_of(theirs, phase).allocated_bytes),
        kTokens)
        << phase;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fsdp2,
    FullyShardedPrograms,
    testing::Values(ShardedCase{"Zero3", 8, 3, 1},
                    ShardedCase{"Zero2Accumulating", 8, 2, 3},
                    ShardedCase{"UnevenOver96", 96, 3, 1},
                    ShardedCase{"Replicas", 16, 3, 1, "none", {0, 1}, 2},
                    ShardedCase{"ReplicasAccumulating", 16, 3, 3, "none", {0, 1}, 4},
                    ShardedCase{"FullRecompute", 8, 3, 1, "full"},
                    ShardedCase{"RecomputeByOperator", 8, 3, 1, "op"},
                    ShardedCase{"RecomputeByOperatorAccumulating", 8, 2, 3, "op"},
                    ShardedCase{"Always", 8, 3, 1, "none", {0, 1}, 1, 1, {"always"}},
                    ShardedCase{"Tied", 8, 3, 1, "none", {0, 1}, 1, 1, {"tied"}},
                    ShardedCase{"TensorRanks", 8, 3, 1, "none", {0, 1}, 1, 2},
                    ShardedCase{"TensorRanksAccumulating", 8, 2, 3, "full", {0, 1}, 1, 2},
                    ShardedCase{"TensorRanksTied", 8, 3, 1, "op", {0, 1}, 1, 2, {"tied"}}));

// Gradients that backward makes and zero_grad() frees, and with data ranks the reducer's buckets.
INSTANTIATE_TEST_SUITE_P(Whole,
                         WholePrograms,
                         testing::Values(ShardedCase{"OneRank", 1, 0, 1},
                                         ShardedCase{"OneRankAccumulating", 1, 0, 3},
                                         ShardedCase{"TensorRanks", 4, 0, 1, "none", {1}, 1, 4},
                                         ShardedCase{"Replicated", 8, 0, 1, "none", {0}}));

}  // namespace
}  // namespace sim
