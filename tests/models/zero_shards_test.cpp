// DeepSpeed's ZeRO stage 3 (see zero_shards.h and zero_gathers.h).
#include "models/data_parallel/zero_shards.h"

#include <gtest/gtest.h>

#include <ATen/ops/full.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "models/shard/unbacked_tensor.h"
#include "tests/models/small_shards.h"

namespace models {
namespace {

using Elements = std::vector<int64_t>;

TEST(ZeroShards, CloseASubGroupWhenItIsFull) {
  EXPECT_EQ(sub_groups({4, 4, 4, 1}, 100), (std::vector<std::size_t>{4}));
  EXPECT_EQ(sub_groups({4, 4, 4, 1}, 5), (std::vector<std::size_t>{2, 2}));
  EXPECT_EQ(sub_groups({4, 4, 4, 1}, 4), (std::vector<std::size_t>{1, 1, 1, 1}));
}

// LlamaForCausalLM, LlamaModel, embed_tokens, rotary_emb, LlamaDecoderLayer, input_layernorm ...
TEST(ZeroGathers, CountCallsOfModulesWithoutParameters) {
  EXPECT_EQ(calls_before("embedding.word_embeddings.weight", false).forward, 2);
  EXPECT_EQ(calls_before("layers.0.input_layernorm.weight", true).forward, 2);
  EXPECT_EQ(calls_before("layers.1.input_layernorm.weight", false).forward, 1);
  EXPECT_EQ(calls_before("layers.1.mlp.linear_fc2.weight", false).backward, 2);
  EXPECT_EQ(calls_before("layers.1.self_attention.key.weight", false).forward, 0);
}

/// Keeps the sizes of what was gathered and reduced, and leaves them as they are.
class ShardBackend final : public c10d::Backend {
 public:
  ShardBackend() : c10d::Backend(0, 2) {}
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& output,
                                                 at::Tensor&,
                                                 const c10d::AllgatherOptions&) override {
    gathered.push_back(output.numel());
    return {};
  }
  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(at::Tensor&,
                                                      at::Tensor& input,
                                                      const c10d::ReduceScatterOptions&) override {
    reduced.push_back(input.numel());
    return {};
  }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>&,
                                           const c10d::AllreduceOptions&) override {
    return {};
  }
  Elements gathered, reduced;
};

/// Rank 0 of two with modules that multiply by a parameter of 3, 4 and 6 elements each.
struct ThreeModules {
  ThreeModules(int64_t prefetch,
               int64_t reuse,
               int64_t live = 1000,
               int64_t persistent = 0,
               const std::vector<std::vector<std::size_t>>& groups = {{0, 1, 2}})
      : parameters(3), backend(c10::make_intrusive<ShardBackend>()) {
    zero = std::make_unique<ZeroShards>(
        ZeroShardsOptions{.gathers = {.prefetch_elements = prefetch,
                                      .persistent_elements = persistent,
                                      .live_elements = live,
                                      .reuse_elements = reuse,
                                      .overlap = false,
                                      .device = at::kCPU,
                                      .data_group = std::make_shared<Communicator>(backend),
                                      .observer = observer},
                          .bucket_elements = 100,
                          .sub_group_elements = 1000});
    for (std::size_t i = 0; i < 3; ++i) {
      const int64_t elements = Elements{3, 4, 6}[i];
      parameters[i].name = "module";
      parameters[i].data_part = {.ranks = 2, .index = 0, .is_flat = true};
      parameters[i].value = unbacked_tensor({elements}, at::kHalf).requires_grad_(true);
      parameters[i].part = at::full({(elements + 1) / 2}, 1.0, at::kHalf);
    }
    std::vector<ParameterList> lists;
    for (const std::vector<std::size_t>& group : groups) {
      ParameterList& list = lists.emplace_back();
      for (const std::size_t number : group) list.push_back(&parameters[number]);
    }
    zero->set_parameters(list_of(parameters), lists);
    zero->begin_iteration();
  }

  at::Tensor forward() {
    zero->start_forward();
    at::Tensor sum = at::full({1}, 1.0, at::kHalf).requires_grad_(true);
    for (Parameter& parameter : parameters) {
      sum = zero->run(&parameter, {&parameter}, sum, [&](const at::Tensor& input) {
        return input + (parameter.value * 10).sum();
      });
    }
    return sum;
  }

  void run_micro_batch() {
    forward().backward();
    zero->finish_backward();
  }

  Elements gathered() { return std::exchange(backend->gathered, {}); }

  SilentObserver observer;
  std::deque<Parameter> parameters;
  c10::intrusive_ptr<ShardBackend> backend;
  std::unique_ptr<ZeroShards> zero;
};

// Padded to 4, 4 and 6: each for its own module, forward and back, as long as the order is unknown.
TEST(ZeroGathers, GatherEachModuleByItselfInTheFirstMicroBatch) {
  ThreeModules rank(100, 0);
  rank.run_micro_batch();
  EXPECT_EQ(rank.gathered(), (Elements{4, 4, 6, 6, 4, 4}));
}

// The first module gathers all others ahead, in one call. The look ahead skips later uses, so that
// what they need stays; but not the use that follows at once, for which the third is gathered
// again.
TEST(ZeroGathers, GatherAheadOnceTheOrderIsKnown) {
  ThreeModules rank(100, 0);
  rank.run_micro_batch();
  rank.gathered();
  rank.run_micro_batch();
  EXPECT_EQ(rank.gathered(), (Elements{4, 4 + 6, 6}));
}

// Without a look ahead, what is used again within 13 elements stays: the third, whose backward
// comes at once, and the second, before whose backward there are 6 of the third's forward and 6 of
// its backward; before the first's there are 4 more.
TEST(ZeroGathers, KeepWhatIsUsedAgainSoon) {
  ThreeModules rank(0, 13);
  rank.run_micro_batch();
  rank.gathered();
  rank.run_micro_batch();
  EXPECT_EQ(rank.gathered(), (Elements{4, 4, 6, 4}));
}

// No more than 9 elements at once: 3 are there and the look ahead takes 4, then it has to wait.
TEST(ZeroGathers, GatherNoMoreAheadThanMayLive) {
  ThreeModules rank(4, 0, /*live=*/5);
  rank.run_micro_batch();
  rank.gathered();
  rank.forward();
  EXPECT_EQ(rank.gathered(), (Elements{4, 4, 6}));
}

TEST(ZeroGathers, GatherSmallParametersAfterTheStepOneByOne) {
  ThreeModules rank(0, 0, 1000, /*persistent=*/4);
  rank.run_micro_batch();
  rank.zero->step_gradients(at::kFloat);
  rank.gathered();
  rank.zero->gather_parameters();
  EXPECT_EQ(rank.gathered(), (Elements{4, 4}));
}

// Rank 0's first halves of what two ranks would sum: 2, 2 and 3 elements of 5; the second
// micro-batch adds as much.
TEST(ZeroShards, AddUpTheirPartsOfTheGradients) {
  ThreeModules rank(100, 0);
  rank.run_micro_batch();
  EXPECT_EQ(rank.backend->reduced, (Elements{4 + 4 + 6}));
  rank.run_micro_batch();
  const at::Tensor all = rank.zero->step_gradients(at::kFloat).at(0);
  EXPECT_EQ(all.numel(), 7);
  EXPECT_EQ(all.sum().item().toDouble(), 7 * 10);
  EXPECT_FALSE(rank.parameters[0].value.grad().defined());
}

// The output layer of tied embeddings runs last, as a module of its own, with the first parameter:
// the order stays that of one forward, so that nothing but the embedding is gathered ahead twice.
TEST(ZeroGathers, FollowAModelWithTiedEmbeddings) {
  ThreeModules rank(100, 1000);
  const int output_layer = 0;
  const auto run = [&] {
    at::Tensor sum = rank.forward();
    rank.zero
        ->run(&output_layer,
              {&rank.parameters[0]},
              sum,
              [&](const at::Tensor& input) { return input + rank.parameters[0].value.sum(); })
        .backward();
    rank.zero->finish_backward();
  };
  run();
  EXPECT_EQ(rank.gathered(), (Elements{4, 4, 6, 4, 4, 6, 4, 4}));
  run();
  EXPECT_EQ(rank.gathered(), (Elements{4, 4 + 6}));
}

// Whole groups lie together, the second parameter in a group before the two others.
TEST(ZeroShards, UpdateEachGroupOfParametersByItself) {
  ThreeModules rank(100, 0, 1000, 0, {{1}, {0, 2}});
  rank.run_micro_batch();
  const std::vector<at::Tensor> gradients = rank.zero->step_gradients(at::kFloat);
  ASSERT_EQ(gradients.size(), 2u);
  EXPECT_EQ(gradients[0].numel(), 2);
  EXPECT_EQ(gradients[1].numel(), 2 + 3);
  EXPECT_EQ(rank.zero->optimizer_pieces().at(1).owner, &rank.parameters[0]);
  EXPECT_EQ(rank.parameters[1].part.storage_offset(), 0);
  EXPECT_EQ(rank.parameters[0].part.storage_offset(), 2);
}

TEST(ZeroShards, HaveNoMemoryForWholeParametersAfterAStep) {
  ThreeModules rank(100, 1000);
  rank.run_micro_batch();
  rank.zero->step_gradients(at::kFloat);
  ASSERT_FALSE(rank.parameters.empty());
  for (const Parameter& parameter : rank.parameters) {
    EXPECT_EQ(parameter.value.storage().nbytes(), 0u);
  }
}

}  // namespace
}  // namespace models
