#include "tests/estimator/test_plans.h"

#include <cmath>

#include "estimator/cluster/rank_classes.h"
#include "estimator/compute/gpu_rates.h"
#include "estimator/hardware/hardware.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/resolve/resolve_plan.h"

namespace estimator {

Json small_tree() {
  return Json::parse(R"({
    "name": "small",
    "model": {"num_layers": 8, "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 1000,
              "max_position_embeddings": 128},
    "cluster": {"gpu": "h100-sxm", "nodes": 1, "gpus_per_node": 8, "gpu_deviation": 0},
    "parallelism": {"tensor": 1, "pipeline": 1},
    "training": {"micro_batch_size": 1, "global_batch_size": 8, "sequence_length": 128}
  })");
}

Plan small_plan(const Json& changes, const PlanContext& context) {
  Json tree = small_tree();
  tree.merge_patch(changes);
  return resolve_plan(tree, context);
}

Plan pipeline_plan(const Json& changes) {
  Json tree = {{"cluster", {{"gpus_per_node", 4}}}, {"parallelism", {{"pipeline", 4}}}};
  tree.merge_patch(changes);
  return small_plan(tree);
}

Plan meta_plan() {
  return resolve_plan(Json::parse(R"({
    "model": {"preset": "llama3-405b"},
    "cluster": {"gpu": "h100-sxm", "nodes": 2048, "gpus_per_node": 8},
    "parallelism": {"tensor": 8, "pipeline": 16, "sequence_parallel": true, "zero_stage": 1,
                    "layers_per_stage": [7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7],
                    "overlap_grad_reduce": true, "overlap_param_gather": true},
    "training": {"global_batch_size": 2048, "sequence_length": 8192}
  })"),
                      {});
}

std::string complaint_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::string complaint_about(const Json& changes, const PlanContext& context) {
  return complaint_of([&] { small_plan(changes, context); });
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

CollectiveCall call_of(CollectiveKind kind, int64_t bytes) {
  CollectiveCall call;
  call.kind = kind;
  call.bytes = bytes;
  return call;
}

OperatorRecord kernels(Direction direction, double seconds_per_iteration) {
  OperatorRecord record;
  record.name = "aten::test";
  record.dtype = "BFloat16";
  record.direction = direction;
  if (seconds_per_iteration <= 0) return record;
  record.count = 1;
  const Gpu& gpu = *find_gpu(small_tree()["cluster"]["gpu"]);
  const double seconds = seconds_per_iteration - assumed_launch_cost(gpu).kernel_seconds;
  record.flops = seconds * gpu.peak_flops(Dtype::kFp32);  // no product: at the rate of fp32
  return record;
}

CollectiveRecord collectives(Direction direction, const CollectiveCall& call, int64_t count) {
  CollectiveRecord record;
  record.call = call;
  record.direction = direction;
  record.count = record.executed_count = count;
  return record;
}

RankProfile profile_without_work(const Plan& plan, int64_t rank) {
  RankProfile profile;
  profile.tool = {"onerank", "test", "none"};
  profile.plan = to_json(plan);
  profile.rank = rank;
  profile.world_size = plan.world_size();
  profile.coordinate = ParallelLayout(plan.parallelism).coordinate(rank);
  profile.device.gpu = plan.cluster.gpu;
  profile.device.name = find_gpu(plan.cluster.gpu)->cuda_name;
  profile.micro_batches = {plan.micro_batches(), plan.micro_batches(), 1, 0};
  return profile;
}

RankProfile profile_of(const Plan& plan,
                       int64_t rank,
                       double forward_seconds,
                       double backward_seconds,
                       int64_t reserved_bytes) {
  const auto micro_batches = static_cast<double>(plan.micro_batches());
  RankProfile profile = profile_without_work(plan, rank);
  profile.device.total_bytes = find_gpu(plan.cluster.gpu)->memory_bytes;
  profile.limit_lifted = reserved_bytes > profile.device.total_bytes;
  profile.phases.push_back(
      {"iteration_1.forward_backward", {}, {}, {reserved_bytes, reserved_bytes}, 0});
  profile.peak = {reserved_bytes, reserved_bytes, "iteration_1.forward_backward", "", ""};
  profile.operators = {kernels(Direction::kForward, micro_batches * forward_seconds),
                       kernels(Direction::kBackward, micro_batches * backward_seconds)};
  return profile;
}

std::vector<RankProfile> profiles_of(const Plan& plan) {
  std::vector<RankProfile> profiles;
  for (const RankClass& rank_class : rank_classes(plan)) {
    profiles.push_back(profile_of(plan, rank_class.representative_rank));
  }
  return profiles;
}

}  // namespace estimator
