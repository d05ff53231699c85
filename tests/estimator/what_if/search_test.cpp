#include "estimator/what_if/search_result.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "estimator/resolve/resolve_plan.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

PlanSpec open_spec(const Json& changes = Json::object()) {
  Json tree = Json::parse(R"({
    "model": {"num_layers": 8, "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 1000,
              "max_position_embeddings": 128},
    "cluster": {"gpu": "h100-sxm", "gpus_per_node": 8},
    "training": {"global_batch_size": 64, "sequence_length": 128}})");
  tree.merge_patch(changes);
  return {.tree = tree, .context = {}};
}

std::vector<std::string> paths_of(const std::vector<SearchAxis>& axes) {
  std::vector<std::string> paths;
  for (const SearchAxis& axis : axes) paths.push_back(axis.path);
  return paths;
}

TEST(Search, VariesWhatIsLeftOpen) {
  EXPECT_THAT(paths_of(search_axes(open_spec(), 16, {})),
              ElementsAre("parallelism.tensor",
                          "parallelism.zero_stage",
                          "training.micro_batch_size",
                          "training.recompute",
                          "parallelism.pipeline",
                          "parallelism.virtual_stages"));
  const PlanSpec fixed =
      open_spec({{"parallelism", {{"tensor", 2}}}, {"training", {{"recompute", "none"}}}});
  EXPECT_THAT(paths_of(search_axes(fixed, 16, {})),
              ElementsAre("parallelism.zero_stage",
                          "training.micro_batch_size",
                          "parallelism.pipeline",
                          "parallelism.virtual_stages"));
}

std::vector<Json> zero_stages_of(const char* framework) {
  const PlanSpec spec = open_spec({{"training", {{"framework", framework}}}});
  for (const SearchAxis& axis : search_axes(spec, 16, {})) {
    if (axis.path == "parallelism.zero_stage") return axis.values;
  }
  return {};
}

TEST(Search, VariesTheZeroStagesThatTheFrameworkHas) {
  EXPECT_EQ(zero_stages_of("megatron-lm"), (std::vector<Json>{0, 1}));
  EXPECT_EQ(zero_stages_of("plain"), (std::vector<Json>{0, 1, 2, 3}));
  // Without a framework stages 2 and 3 would be another one's.
  for (const SearchAxis& axis : search_axes(open_spec(), 16, {})) {
    if (axis.path != "parallelism.zero_stage") continue;
    EXPECT_EQ(axis.values, (std::vector<Json>{0, 1}));
  }
}

TEST(Search, VariesListedValuesOfAnyKey) {
  const SearchAxis listed{"training.dtype", {"bf16", "fp16"}};
  const PlanSpec spec = open_spec({{"training", {{"dtype", "bf16"}}}});
  EXPECT_EQ(search_axes(spec, 16, {listed}).back().values, listed.values);
  std::set<Dtype> dtypes;
  for (const Layout& layout : allowed_layouts(spec, {listed}, 8).allowed) {
    dtypes.insert(layout.plan.training.dtype);
  }
  EXPECT_EQ(dtypes, (std::set<Dtype>{Dtype::kBf16, Dtype::kFp16}));
}

TEST(Search, TriesContextRanksForLongSequencesAlone) {
  const PlanSpec lengthy = open_spec({{"training", {{"sequence_length", 32768}}},
                                      {"model", {{"max_position_embeddings", 32768}}}});
  EXPECT_THAT(paths_of(search_axes(lengthy, 16, {})), testing::Contains("parallelism.context"));
  const PlanSpec usual = open_spec(
      {{"training", {{"sequence_length", 4096}}}, {"model", {{"max_position_embeddings", 4096}}}});
  for (const SearchAxis& axis : search_axes(usual, 16, {})) {
    if (axis.path != "parallelism.context") continue;
    EXPECT_EQ(axis.values, (std::vector<Json>{1, 2}));
  }
  EXPECT_THAT(paths_of(search_axes(usual, 16, {})), testing::Contains("parallelism.context"));
}

TEST(Search, DividesLayersUnevenlyWhereTheFrameworkDoes) {
  const PlanSpec spec = open_spec({{"training", {{"framework", "nanotron"}}},
                                   {"parallelism", {{"tensor", 1}}},
                                   {"cluster", {{"gpus_per_node", 6}}}});
  const std::vector<SearchAxis> axes = search_axes(spec, 6, {});
  std::set<int64_t> pipelines;
  for (const Layout& layout : allowed_layouts(spec, axes, 6).allowed) {
    pipelines.insert(layout.plan.parallelism.pipeline);
    EXPECT_EQ(layout.plan.parallelism.virtual_stages, 1);
  }
  EXPECT_THAT(pipelines, testing::Contains(3));  // of 8 layers
}

TEST(Search, CountsEmbeddingAndLossAsLayersWhereThatDividesThem) {
  const PlanSpec spec =
      open_spec({{"model", {{"num_layers", 14}}}, {"parallelism", {{"tensor", 1}}}});
  std::set<std::vector<int64_t>> divided;
  for (const Layout& layout : allowed_layouts(spec, search_axes(spec, 8, {}), 8).allowed) {
    const ParallelConfig& p = layout.plan.parallelism;
    if (p.pipeline == 4 && p.virtual_stages == 1) divided.insert(p.layers_per_stage);
  }
  EXPECT_EQ(divided, (std::set<std::vector<int64_t>>{{3, 4, 4, 3}}));
}

// 13 layers, embedding, loss and one prediction are 16 in the place of layers.
TEST(Search, CountsPredictionsOfMoreTokensAsLayersToo) {
  const PlanSpec spec = open_spec(
      {{"model", {{"num_layers", 13}, {"mtp_num_layers", 1}, {"position_embedding", "rope"}}},
       {"parallelism", {{"tensor", 1}}}});
  std::set<std::vector<int64_t>> divided;
  for (const Layout& layout : allowed_layouts(spec, search_axes(spec, 8, {}), 8).allowed) {
    const ParallelConfig& p = layout.plan.parallelism;
    if (p.pipeline == 4 && p.virtual_stages == 1) divided.insert(p.layers_per_stage);
  }
  EXPECT_EQ(divided, (std::set<std::vector<int64_t>>{{3, 4, 4, 2}}));
}

TEST(Search, FillsTheWorldWithDataRanksAndCountsWhatTheRulesForbid) {
  const PlanSpec spec = open_spec();
  const std::vector<SearchAxis> axes = search_axes(spec, 16, {});
  const Layouts layouts = allowed_layouts(spec, axes, 16);
  std::size_t all = 1;
  for (const SearchAxis& axis : axes) all *= axis.values.size();
  EXPECT_EQ(layouts.allowed.size() + static_cast<std::size_t>(layouts.refused.sum()), all);
  std::set<std::string> flags;
  for (const Layout& layout : layouts.allowed) {
    const ParallelConfig& p = layout.plan.parallelism;
    EXPECT_EQ(p.tensor * p.pipeline * p.data, 16);
    EXPECT_EQ(p.sequence_parallel, p.tensor > 1);
    EXPECT_EQ(layout.plan.global_batch_size(), 64);
    flags.insert(quick_pieces_key(layout) + to_json(layout.plan).dump());
  }
  EXPECT_EQ(flags.size(), layouts.allowed.size());  // no layout twice
}

/// What overlaps in the layouts: "" is nothing, r the reduction and g the gathers.
std::map<std::string, std::set<std::string>> overlaps_of(const Json& changes) {
  const PlanSpec spec = open_spec(changes);
  std::map<std::string, std::set<std::string>> overlaps;
  for (const Layout& layout : allowed_layouts(spec, search_axes(spec, 16, {}), 16).allowed) {
    const ParallelConfig& p = layout.plan.parallelism;
    const std::string kind = layout.plan.replicas() == 1 ? "alone"
                             : p.pipeline == 1           ? "one stage"
                             : p.virtual_stages == 1     ? "stages"
                                                         : "virtual stages";
    overlaps[kind].insert(std::string(p.overlap_grad_reduce ? "r" : "") +
                          (p.overlap_param_gather ? "g" : ""));
  }
  return overlaps;
}

Json in_framework(const char* framework, int64_t zero_stage, Json parallelism = Json::object()) {
  parallelism["zero_stage"] = zero_stage;
  return {{"training", {{"framework", framework}}}, {"parallelism", parallelism}};
}

// Without virtual stages the stages would gather one after the other.
TEST(Search, OverlapsWhatTheDataRanksExchangeWhereTheFrameworkCan) {
  using Overlaps = std::map<std::string, std::set<std::string>>;
  EXPECT_EQ(
      overlaps_of(in_framework("megatron-lm", 1)),
      (Overlaps{
          {"alone", {""}}, {"one stage", {"rg"}}, {"stages", {"r"}}, {"virtual stages", {"rg"}}}));
  EXPECT_EQ(
      overlaps_of(in_framework("megatron-lm", 0)),
      (Overlaps{
          {"alone", {""}}, {"one stage", {"r"}}, {"stages", {"r"}}, {"virtual stages", {"r"}}}));
  EXPECT_EQ(overlaps_of(in_framework("plain", 2))["one stage"], (std::set<std::string>{""}));
  EXPECT_EQ(overlaps_of(in_framework("nanotron", 1))["one stage"], (std::set<std::string>{""}));
}

TEST(Search, KeepsToTheOverlapThatWasSaid) {
  const auto one_stage = [](const Json& said) {
    return overlaps_of(in_framework("megatron-lm", 1, said))["one stage"];
  };
  EXPECT_EQ(one_stage({{"overlap_grad_reduce", false}}), (std::set<std::string>{""}));
  EXPECT_EQ(one_stage({{"overlap_grad_reduce", true}}), (std::set<std::string>{"r"}));
  EXPECT_EQ(one_stage({{"overlap_param_gather", false}}), (std::set<std::string>{""}));
}

TEST(Search, GivesPlansOfOneFamilyTheSameKey) {
  const PlanSpec spec = open_spec();
  std::map<std::string, std::string> pieces;
  for (const Layout& layout : allowed_layouts(spec, search_axes(spec, 16, {}), 16).allowed) {
    const auto [found, is_new] =
        pieces.try_emplace(quick_pieces_key(layout), pieces_of(layout.plan));
    EXPECT_EQ(found->second, pieces_of(layout.plan));
  }
  EXPECT_GT(pieces.size(), 10u);
}

TEST(Search, GivesLayoutsWithoutReducerBucketsAKeyOfTheirOwn) {
  const PlanSpec spec = open_spec(
      {{"training", {{"framework", "nanotron"}, {"micro_batch_size", 1}, {"recompute", "none"}}},
       {"parallelism", {{"tensor", 1}, {"zero_stage", 0}, {"virtual_stages", 1}}}});
  std::map<std::string, std::string> pieces;
  for (const Layout& layout : allowed_layouts(spec, search_axes(spec, 8, {}), 8).allowed) {
    const std::string& same =
        pieces.try_emplace(quick_pieces_key(layout), pieces_of(layout.plan)).first->second;
    EXPECT_EQ(same, pieces_of(layout.plan));
  }
  EXPECT_EQ(pieces.size(), 3u);  // one stage, stages with one data rank, and with several
}

/// What is different about each layout, in both orders of the values of an axis.
std::set<std::string> allowed_with(const PlanSpec& spec, SearchAxis axis, int64_t gpus) {
  std::set<std::string> seen;
  for (const Layout& layout : searched_layouts(spec, {axis}, gpus).allowed) {
    const ParallelConfig& p = layout.plan.parallelism;
    seen.insert(fmt::format("{} layers, batch {}, sequence {}, tp {} cp {} pp {} dp {}",
                            layout.plan.model.num_layers,
                            layout.plan.global_batch_size(),
                            layout.plan.sequence_length(),
                            p.tensor,
                            p.context,
                            p.pipeline,
                            p.data));
  }
  return seen;
}

std::set<std::string> allowed_in_any_order(const PlanSpec& spec, SearchAxis axis, int64_t gpus) {
  const std::set<std::string> seen = allowed_with(spec, axis, gpus);
  std::reverse(axis.values.begin(), axis.values.end());
  EXPECT_EQ(allowed_with(spec, axis, gpus), seen);
  return seen;
}

// 24 GPUs of 8 tensor ranks are 3 data ranks, which 64 samples are not divided by.
TEST(Search, DividesEachListedBatch) {
  const PlanSpec spec = open_spec({{"parallelism", {{"tensor", 8}, {"pipeline", 1}}}});
  EXPECT_EQ(allowed_in_any_order(spec, {"training.global_batch_size", {64, 96}}, 24),
            (std::set<std::string>{"8 layers, batch 96, sequence 128, tp 8 cp 1 pp 1 dp 3"}));
}

// 3 stages divide 24 layers, and 16 with the embedding and the loss in the place of two.
TEST(Search, DividesTheLayersOfEachListedModel) {
  const PlanSpec spec = open_spec(
      {{"parallelism", {{"tensor", 1}, {"pipeline", 3}}}, {"cluster", {{"gpus_per_node", 6}}}});
  EXPECT_EQ(allowed_in_any_order(spec, {"model.num_layers", {16, 24}}, 6),
            (std::set<std::string>{"16 layers, batch 64, sequence 128, tp 1 cp 1 pp 3 dp 2",
                                   "24 layers, batch 64, sequence 128, tp 1 cp 1 pp 3 dp 2"}));
}

TEST(Search, TriesContextRanksForEachLongSequenceThatIsListed) {
  const PlanSpec spec = open_spec({{"model", {{"position_embedding", "rope"}}},
                                   {"parallelism", {{"tensor", 1}, {"pipeline", 1}}}});
  EXPECT_EQ(allowed_in_any_order(spec, {"training.sequence_length", {2048, 16384}}, 8).size(),
            5u);  // 1, 2, 4 and 8 context ranks of the long ones
}

TEST(Search, KeepsToListedDataRanks) {
  const PlanSpec spec = open_spec({{"parallelism", {{"data", 2}, {"pipeline", 1}}}});
  EXPECT_EQ(allowed_in_any_order(spec, {"parallelism.data", {2, 8}}, 8),
            (std::set<std::string>{"8 layers, batch 64, sequence 128, tp 1 cp 1 pp 1 dp 8",
                                   "8 layers, batch 64, sequence 128, tp 4 cp 1 pp 1 dp 2"}));
}

TEST(Search, LeavesOutListedValuesThatNoLayoutCanHave) {
  const PlanSpec spec = open_spec({{"training", {{"micro_batch_size", 128}}}});
  const std::vector<SearchAxis> listed = {{"training.micro_batch_size", {128, 1}}};
  EXPECT_EQ(searched_plans(spec, listed).size(), 1u);
  EXPECT_THROW(searched_plans(spec, {{"training.micro_batch_size", {128, 256}}}), UserError);
}

// DeepSpeed's engine has stages 1 to 3, and none without ZeRO.
TEST(Search, TriesTheZeroStagesOfAFrameworkThatHasNoStage0) {
  const PlanSpec spec = open_spec(
      {{"model",
        {{"add_bias_linear", false}, {"position_embedding", "rope"}, {"normalization", "RMSNorm"}}},
       {"training", {{"framework", "deepspeed"}}}});
  const Plan base = searched_plan(spec);
  EXPECT_EQ(base.training.framework, Framework::kDeepspeed);
  EXPECT_EQ(base.parallelism.zero_stage, 1);
  std::vector<Json> stages;
  for (const SearchAxis& axis : search_axes(spec, 8, {})) {
    if (axis.path == "parallelism.zero_stage") stages = axis.values;
  }
  EXPECT_EQ(stages, (std::vector<Json>{1, 2, 3}));
}

TEST(Search, NeedsAGlobalBatch) {
  const PlanSpec spec = open_spec({{"training", {{"global_batch_size", nullptr}}}});
  try {
    searched_plan(spec);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--global-batch-size"));
  }
}

TEST(Search, RefusesAnAccumulationForAllLayouts) {
  const PlanSpec spec = open_spec({{"training", {{"gradient_accumulation_steps", 2}}}});
  EXPECT_THAT(complaint_of([&] { searched_plan(spec); }),
              HasSubstr("--gradient-accumulation-steps auto"));
}

Layout found_like(double seconds, int64_t free_gib, int64_t nodes) {
  const PlanSpec spec = open_spec({{"cluster", {{"nodes", nodes}}}});
  Layout layout{.edits = {{"parallelism.tensor", 1}, {"training.micro_batch_size", 2}},
                .plan = resolve_plan(spec),
                .composed = ComposedPlan{.outcome = Fit::kFits, .headroom_bytes = free_gib * kGiB}};
  layout.composed->time.emplace().iteration_seconds = seconds;
  return layout;
}

std::vector<FoundLayout> found(const std::vector<Layout>& layouts, double price) {
  std::vector<FoundLayout> all;
  for (const Layout& layout : layouts) all.push_back(found_layout(layout, price));
  return all;
}

TEST(Search, ParetoFrontLeavesOutWhatIsWorseInAll) {
  const std::vector<FoundLayout> front = pareto_front(found({found_like(3, 10, 1),  // least memory
                                                             found_like(2, 5, 1),   // fastest
                                                             found_like(3, 9, 1),
                                                             found_like(2, 5, 1)},
                                                            2));
  ASSERT_EQ(front.size(), 2u);
  EXPECT_EQ(front[0].iteration_seconds, 2);
  EXPECT_EQ(front[1].headroom_bytes, 10 * kGiB);
}

TEST(Search, ParetoFrontHasWhatNeedsFewerGpusOrCostsLess) {
  const std::vector<FoundLayout> front =
      pareto_front(found({found_like(2, 10, 1), found_like(1.5, 10, 2)}, 2));
  EXPECT_EQ(front.size(), 2u);
  // 8 GPUs for 2 s are 16 GPU seconds; 16 GPUs for 1.5 s are 24.
  EXPECT_NEAR(*front[0].usd_per_million_tokens / *front[1].usd_per_million_tokens, 1.5, 1e-9);
}

TEST(Search, ParetoFrontComparesStepsOfDifferentWorkByTheirTokens) {
  Layout more = found_like(2, 10, 1);
  more.plan = resolve_plan(
      open_spec({{"cluster", {{"nodes", 1}}}, {"training", {{"global_batch_size", 256}}}}));
  const std::vector<FoundLayout> front = pareto_front(found({found_like(1, 10, 1), more}, 2));
  ASSERT_EQ(front.size(), 1u);
  EXPECT_EQ(front[0].iteration_seconds, 2);
}

TEST(Search, CountsWhatTheExecutionOfALayoutSays) {
  Layouts layouts;
  layouts.refused.counts = {{"a rule", 2}, {"another rule", 5}};
  layouts.allowed = {found_like(1, 10, 1), found_like(2, 5, 1)};
  for (Layout& layout : layouts.allowed) layout.composed->peak_bytes = 40 * kGiB;
  EXPECT_EQ(world_search(8, layouts).fits, 2);
  EXPECT_FALSE(holds(layouts));
  layouts.allowed[0].executed = {.peak_bytes = 60 * kGiB, .outcome = Fit::kDoesNotFit};
  EXPECT_EQ(world_search(8, layouts).fits, 1);
  EXPECT_FALSE(holds(layouts));
  EXPECT_EQ(leanest_of(layouts), &layouts.allowed[1]);
  layouts.allowed[1].executed = {.peak_bytes = 50 * kGiB, .outcome = Fit::kFits};
  EXPECT_TRUE(holds(layouts));
  const std::vector<RefusalCount> refusals = world_search(8, layouts).refusals;
  EXPECT_EQ(refusals.front().what, "another rule");
  EXPECT_EQ(refusals.front().layouts, 5);
}

TEST(Search, TellsTheFlagsThatSayMoreThanTheDefaults) {
  EXPECT_EQ(found_layout(found_like(1, 1, 1), {}).flags, "--mbs 2");
}

}  // namespace
}  // namespace estimator
