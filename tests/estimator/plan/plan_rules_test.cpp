#include <gtest/gtest.h>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

/// A plan with one mistake, and words of the message that it must get.
struct BadPlan {
  const char* name;
  const char* changes;
  std::vector<std::string> words;
};

void PrintTo(const BadPlan& plan, std::ostream* stream) { *stream << plan.changes; }

class Rules : public testing::TestWithParam<BadPlan> {};

TEST_P(Rules, SayWhatIsWrongAndTheWayOut) {
  const std::string text = complaint_about(Json::parse(GetParam().changes));
  ASSERT_NE(text, "") << "the plan was accepted";
  for (const std::string& words : GetParam().words) {
    EXPECT_NE(text.find(words), std::string::npos) << "\"" << words << "\" is not in\n" << text;
  }
  EXPECT_NE(text.find("help: "), std::string::npos) << text;
}

const std::vector<BadPlan> kBadPlans = {
    {"UnknownGpu",
     R"({"cluster": {"gpu": "h100-smx"}})",
     {"unknown GPU", "did you mean h100-sxm?"}},
    {"NoGpu", R"({"cluster": {"gpu": null}})", {"the plan names no GPU"}},
    {"UnknownLink",
     R"({"cluster": {"intra_link": "nvlnk4"}})",
     {"unknown link", "cluster.intra_link", "did you mean nvlink4?"}},
    {"UnknownNetwork",
     R"({"cluster": {"inter_link": "carrier-pigeon"}})",
     {"unknown link", "cluster.inter_link"}},
    {"DtypeTheGpuLacks",
     R"({"cluster": {"gpu": "v100"}, "training": {"dtype": "bf16"}})",
     {"cannot compute in this type", "v100-sxm2-32", "fp16"}},
    {"NoWorld",
     R"({"cluster": {"nodes": null}})",
     {"the size of the world is not known", "--world-size"}},
    {"WorldTooLarge",
     R"({"cluster": {"nodes": 1000000}, "parallelism": {"data": 8}})",
     {"the world is too large", "1000000 ranks"}},
    {"DegreesDoNotMultiply",
     R"({"parallelism": {"tensor": 4, "data": 3}})",
     {"do not multiply to the world", "= 12 ranks, world 8", "use data = 2"}},
    {"DegreesDoNotDivide",
     R"({"parallelism": {"tensor": 1, "pipeline": 4, "data": null}, "cluster": {"gpus_per_node": 6}})",
     {"do not multiply to the world", "multiple of 4"}},
    {"HeadsDoNotDivide",
     R"({"model": {"num_attention_heads": 6, "hidden_size": 96, "num_query_groups": 6}, "parallelism": {"tensor": 4}})",
     {"attention heads do not divide", "model.num_attention_heads = 6"}},
    {"QueryGroupsDoNotDivide",
     R"({"model": {"num_query_groups": 3, "num_attention_heads": 24, "hidden_size": 192}, "parallelism": {"tensor": 2}})",
     {"do not divide each other", "model.num_query_groups = 3", "use a tensor parallel size of"}},
    {"SharedQueryGroupsOfAnotherDialect",
     R"({"model": {"num_query_groups": 2}, "parallelism": {"tensor": 4}, "training": {"dialect": "plain"}})",
     {"only Megatron-LM lets tensor ranks use the same key/value head", "dialect = plain"}},
    {"SharedQueryGroupsDoNotDivideTheirColumns",
     R"({"model": {"num_query_groups": 1, "kv_channels": 2}, "parallelism": {"tensor": 8}})",
     {"the columns of keys and values do not divide", "model.kv_channels = 2"}},
    {"QueryGroupsDoNotDivideHeads",
     R"({"model": {"num_query_groups": 3}})",
     {"query heads do not divide by the key/value heads"}},
    {"MlpDoesNotDivide",
     R"({"model": {"ffn_hidden_size": 100}, "parallelism": {"tensor": 8}})",
     {"the MLP's columns do not divide", "model.ffn_hidden_size = 100"}},
    {"OddHeadWidthWithRope",
     R"({"model": {"kv_channels": 7, "position_embedding": "rope"}})",
     {"even head width", "model.kv_channels = 7"}},
    {"LayersDoNotSplit",
     R"({"parallelism": {"pipeline": 8}, "model": {"num_layers": 12}})",
     {"do not split the layers evenly",
      "parallelism.pipeline = 8",
      "num_layers = 12",
      "layers_per_stage"}},
    {"LayersPerStageTooFew",
     R"({"parallelism": {"pipeline": 4, "layers_per_stage": [4, 4]}})",
     {"does not describe the pipeline"}},
    {"LayersPerStageWrongSum",
     R"({"parallelism": {"pipeline": 2, "layers_per_stage": [4, 5]}})",
     {"does not describe the pipeline", "9 layers"}},
    {"LayersPerStageNegative",
     R"({"parallelism": {"pipeline": 2, "layers_per_stage": [9, -1]}})",
     {"out of range", "parallelism.layers_per_stage"}},
    {"BatchDoesNotDivide",
     R"({"training": {"global_batch_size": 12}})",
     {"does not divide into micro-batches", "= 12", "8 or 16"}},
    {"SequenceBeyondPositions",
     R"({"training": {"sequence_length": 256}})",
     {"longer than the learned positions", "256"}},
    {"SequenceDoesNotDivide",
     R"({"training": {"sequence_length": 127}, "parallelism": {"tensor": 2, "sequence_parallel": true}})",
     {"the sequence does not divide", "127", "128"}},
    {"ContextOfUnfusedAttention",
     R"({"parallelism": {"context": 2}, "training": {"attention": "unfused"}})",
     {"unfused attention does not go across context ranks", "parallelism.context = 2"}},
    {"ContextOfAnotherDialect",
     R"({"parallelism": {"context": 2}, "training": {"dialect": "plain"}})",
     {"TransformerEngine's attention alone", "training.dialect = plain"}},
    {"ContextOfMegatronsOwnLayers",
     R"({"parallelism": {"context": 2}, "training": {"transformer_impl": "local"}})",
     {"TransformerEngine's attention alone", "training.transformer_impl = local"}},
    {"ContextOfOddHeadWidth",
     R"({"parallelism": {"context": 2}, "model": {"kv_channels": 12}})",
     {"multiple of 8", "model.kv_channels = 12", "use 16"}},
    {"ContextDoesNotSplitTheSequence",
     R"({"parallelism": {"context": 2}, "training": {"sequence_length": 126}})",
     {"does not divide among the context ranks", "126", "128"}},
    {"ContextAndTensorDoNotSplitTheSequence",
     R"({"parallelism": {"context": 2, "tensor": 4, "sequence_parallel": true}, "training": {"sequence_length": 124}})",
     {"does not divide among the context ranks", "124", "128"}},
    {"AllToAllOfFewerHeadsThanRanks",
     R"({"parallelism": {"context": 4, "context_comm": "a2a"}, "model": {"num_query_groups": 2}})",
     {"key/value heads of a tensor rank do not divide", "model.num_query_groups = 2", "p2p"}},
    {"AllGatherOfContextRanks",
     R"({"parallelism": {"context": 2, "context_comm": "all_gather"}})",
     {"exchange all_gather of context ranks is not built yet", "use p2p or a2a"}},
    {"HierarchicalContext",
     R"({"parallelism": {"context": 2, "context_comm": "a2a+p2p"}})",
     {"exchange a2a+p2p of context ranks is not built yet"}},
    {"ExpertParallel",
     R"({"parallelism": {"expert": 2}})",
     {"expert parallelism is not built yet"}},
    {"InterleavingWithoutAPipeline",
     R"({"parallelism": {"virtual_stages": 2}})",
     {"at least 2 pipeline stages", "parallelism.pipeline = 1"}},
    {"InterleavingTwoStagesWithoutOverlap",
     R"({"parallelism": {"pipeline": 2, "virtual_stages": 2, "overlap_p2p_communication": false}})",
     {"at least 3 pipeline stages", "leave overlap_p2p_communication on"}},
    {"InterleavingGpipe",
     R"({"parallelism": {"pipeline": 2, "virtual_stages": 2, "pipeline_schedule": "gpipe"}})",
     {"only 1f1b interleaves", "gpipe"}},
    {"VirtualStagesDoNotSplitTheLayers",
     R"({"parallelism": {"pipeline": 2, "virtual_stages": 3}})",
     {"virtual stages do not split the layers evenly", "num_layers = 8", "use 1, 2, 4"}},
    {"LayersOfAStageDoNotSplit",
     R"({"parallelism": {"pipeline": 2, "virtual_stages": 2, "layers_per_stage": [3, 5]}})",
     {"do not divide into its virtual stages", "give 4 numbers"}},
    {"LayersOfVirtualStagesTooFew",
     R"({"parallelism": {"pipeline": 2, "virtual_stages": 2, "layers_per_stage": [2, 3, 3]}})",
     {"does not describe the pipeline", "give 2 numbers (a stage each) or 4"}},
    {"MicroBatchesAreNoGroups",
     R"({"parallelism": {"pipeline": 2, "virtual_stages": 2}, "training": {"global_batch_size": 12}})",
     {"do not divide into groups", "3 micro-batches", "groups of 2", "multiple of 2"}},
    {"GroupSmallerThanThePipeline",
     R"({"parallelism": {"pipeline": 4, "virtual_stages": 2, "microbatch_group_size_per_virtual_stage": 2}})",
     {"do not divide into groups", "groups of 2"}},
    {"SplitBackward",
     R"({"parallelism": {"pipeline": 2, "pipeline_schedule": "zb-h1"}})",
     {"backward in two parts", "parallelism.pipeline_schedule = zb-h1"}},
    {"ZeroStage3",
     R"({"parallelism": {"zero_stage": 3}})",
     {"ZeRO stage 3 is FSDP2 here, which the dialect does not have",
      "training.dialect = megatron-lm"}},
    {"FullyShardedPipeline",
     R"({"parallelism": {"zero_stage": 3, "pipeline": 2}, "training": {"dialect": "torchtitan"}})",
     {"not built under a pipeline", "parallelism.pipeline = 2"}},
    {"FullyShardedFp16",
     R"({"parallelism": {"zero_stage": 2}, "training": {"dialect": "plain", "dtype": "fp16"}})",
     {"no loss scaling", "training.dtype = fp16"}},
    {"ZeroStage5",
     R"({"parallelism": {"zero_stage": 5}})",
     {"no such ZeRO stage", "parallelism.zero_stage = 5"}},
    {"NegativeDegree",
     R"({"parallelism": {"tensor": -1}})",
     {"out of range", "parallelism.tensor = -1"}},
    {"ZeroPipeline",
     R"({"parallelism": {"pipeline": 0}})",
     {"out of range", "parallelism.pipeline = 0"}},
    {"ZeroBatch",
     R"({"training": {"global_batch_size": 0}})",
     {"out of range", "training.global_batch_size = 0"}},
    {"ZeroMicroBatch",
     R"({"training": {"micro_batch_size": 0}})",
     {"out of range", "training.micro_batch_size = 0"}},
    {"HugeLayers",
     R"({"model": {"num_layers": 9000000000000000}})",
     {"out of range", "model.num_layers"}},
    {"NoLayers", R"({"model": {"num_layers": 0}})", {"out of range", "model.num_layers = 0"}},
    {"NoHeads",
     R"({"model": {"num_attention_heads": 0}})",
     {"out of range", "model.num_attention_heads = 0"}},
    {"NoVocabulary", R"({"model": {"vocab_size": 0}})", {"out of range", "model.vocab_size = 0"}},
    {"NegativeHeadroom",
     R"({"memory": {"headroom_bytes": -1}})",
     {"out of range", "memory.headroom_bytes = -1"}},
    {"NegativeDataLoading",
     R"({"time": {"data_loading_seconds": -1}})",
     {"a time is negative", "time.data_loading_seconds = -1"}},
    {"NegativeDeviation",
     R"({"cluster": {"gpu_deviation": -0.01}})",
     {"deviation of the GPUs' time", "cluster.gpu_deviation = -0.01", "0.015 for 1.5 %"}},
    {"DeviationInPercent",
     R"({"cluster": {"gpu_deviation": 1.5}})",
     {"deviation of the GPUs' time", "cluster.gpu_deviation = 1.5", "0.015 for 1.5 %"}},
    {"UserBuffersWithoutSequenceParallelism",
     R"({"parallelism": {"tensor": 2, "tp_comm_overlap": true}})",
     {"need sequence parallelism", "add --sequence-parallel"}},
    {"UserBuffersWithoutTransformerEngine",
     R"({"parallelism": {"tensor": 2, "sequence_parallel": true, "tp_comm_overlap": true},
         "training": {"transformer_impl": "local"}})",
     {"only TransformerEngine", "training.transformer_impl = local"}},
    {"UserBuffersOfAnotherFramework",
     R"({"parallelism": {"tensor": 2, "sequence_parallel": true, "tp_comm_overlap": true},
         "training": {"dialect": "plain"}})",
     {"only TransformerEngine", "training.dialect = plain"}},
    {"NegativeTokens", R"({"training": {"tokens": -5}})", {"out of range", "training.tokens = -5"}},
    {"NegativePrice", R"({"cluster": {"usd_per_gpu_hour": -2}})", {"a price is negative"}},
    {"SpineFasterThanThePod",
     R"({"cluster": {"spine_oversubscription": 0.5}})",
     {"out of a pod", "spine_oversubscription = 0.5"}},
    {"OversubscribedWithoutPods",
     R"({"cluster": {"spine_oversubscription": 7}})",
     {"where pods end", "give cluster.nodes_per_pod"}},
    {"NoRestart",
     R"({"reliability": {"restart_seconds": 0}})",
     {"a time is not positive", "reliability.restart_seconds = 0"}},
    {"NoSaveInterval",
     R"({"reliability": {"save_interval": 0}})",
     {"out of range", "reliability.save_interval = 0"}},
    {"NoEpsilon", R"({"model": {"norm_epsilon": 0}})", {"epsilon is not positive"}},
    {"NoRotaryBase", R"({"model": {"rotary_base": 1}})", {"rotary base"}},
    {"DropoutOfOne",
     R"({"model": {"hidden_dropout": 1}})",
     {"dropout probability", "model.hidden_dropout = 1"}},
    {"FlashInFp32",
     R"({"training": {"dtype": "fp32", "attention": "flash"}})",
     {"flash attention", "training.dtype = fp32", "unfused"}},
    {"FlashOnVolta",
     R"({"cluster": {"gpu": "v100"}, "training": {"dtype": "fp16", "attention": "flash"}})",
     {"flash attention needs an Ampere GPU", "v100-sxm2-32"}},
    {"FlashWithWideHeads",
     R"({"model": {"kv_channels": 512}, "training": {"attention": "flash"}})",
     {"flash attention", "model.kv_channels = 512"}},
    {"FilledMemoryAlone",
     R"({"training": {"fill_uninitialized_memory": true}})",
     {"fills new memory only under deterministic", "--deterministic-mode"}},
    {"DeterministicUserBuffers",
     R"({"parallelism": {"tensor": 2, "sequence_parallel": true, "tp_comm_overlap": true},
         "training": {"deterministic_mode": true}})",
     {"user buffers are not deterministic", "parallelism.tp_comm_overlap"}},
    {"DeterministicFusedLoss",
     R"({"training": {"deterministic_mode": true, "cross_entropy_fusion": "native"}})",
     {"cross-entropy is not deterministic", "cross_entropy_fusion = native"}},
    {"HugeDegreesTogether",
     R"({"cluster": {"nodes": null, "gpus_per_node": null}, "parallelism": {"tensor": 1000000, "pipeline": 1000000, "context": 1000000, "data": 1000000}})",
     {"error:"}},
    {"TextForANumber",
     R"({"parallelism": {"tensor": "8"}})",
     {"a whole number is needed", "parallelism.tensor = \"8\""}},
    {"UnknownSchedule",
     R"({"parallelism": {"pipeline_schedule": "gpip"}})",
     {"unknown value", "did you mean gpipe?"}},
};

INSTANTIATE_TEST_SUITE_P(Plan, Rules, testing::ValuesIn(kBadPlans), [](const auto& info) {
  return std::string(info.param.name);
});

TEST(PlanRules, VocabularyThatDoesNotDivideIsRefusedOnlyWithoutPadding) {
  const Json changes = {{"model", {{"vocab_size", 1001}}},
                        {"parallelism", {{"tensor", 2}}},
                        {"training", {{"dialect", "plain"}, {"make_vocab_size_divisible_by", 1}}}};
  EXPECT_EQ(complaint_about(changes), "");  // padded to a multiple of the tensor ranks
  EXPECT_EQ(small_plan(changes).padded_vocab_size(), 1002);
}

TEST(PlanRules, NameBothWorldsWhenTheyDiffer) {
  const std::string text = complaint_about(Json::object(), {.world_size = 1024});
  EXPECT_NE(text.find("WORLD_SIZE is not the plan's world"), std::string::npos) << text;
  EXPECT_NE(text.find("WORLD_SIZE = 1024, cluster.nodes 1 x cluster.gpus_per_node 8 = 8"),
            std::string::npos)
      << text;
}

TEST(PlanRules, ReportEveryBrokenRuleAtOnce) {
  try {
    small_plan({{"cluster", {{"gpu", "nothing"}}},
                {"training", {{"global_batch_size", 12}, {"sequence_length", 256}}}});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.problems().size(), 3u) << error.what();
  }
}

}  // namespace
}  // namespace estimator
