#include "estimator/cluster/program_estimate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "estimator/base/units.h"
#include "estimator/cluster/memory_verdict.h"
#include "estimator/communication/fabric.h"
#include "estimator/hardware/hardware.h"

namespace estimator {
namespace {

std::string described(const RankProfile& profile) {
  return fmt::format("rank {}: {} on {} ranks of {}",
                     profile.rank,
                     profile.program ? fmt::format("{}", fmt::join(profile.program->command, " "))
                                     : "a plan's shard",
                     profile.world_size,
                     profile.device.gpu);
}

bool same_run(const RankProfile& a, const RankProfile& b) {
  return a.program && b.program && a.program->command == b.program->command &&
         a.world_size == b.world_size && a.device.gpu == b.device.gpu &&
         a.device.allocator == b.device.allocator;
}

void check_profiles(const std::vector<RankProfile>& profiles) {
  for (const RankProfile& profile : profiles) {
    if (same_run(profile, profiles.front())) continue;
    throw UserError({.what = "the profiles are not of one program, world, GPU and allocator",
                     .where = described(profiles.front()) + "\n  " + described(profile),
                     .help = "keep those of one run of `onerank exec` in a folder of their own"});
  }
  if (find_gpu(profiles.front().device.gpu) == nullptr) {
    throw UserError({.what = "unknown GPU",
                     .where = described(profiles.front()),
                     .help = gpu_help(profiles.front().device.gpu)});
  }
}

/// As much of a plan as memory asks for: the cluster.
Plan cluster_of(const RankProfile& profile) {
  Plan plan;
  const Gpu& gpu = *find_gpu(profile.device.gpu);
  plan.cluster.gpu = gpu.id;
  plan.cluster.gpus_per_node = profile.program->gpus_per_node;
  plan.cluster.nics_per_node = profile.program->gpus_per_node;
  plan.cluster.nodes = divide_up(profile.world_size, profile.program->gpus_per_node);
  plan.cluster.intra_link = gpu.default_intra_link;
  plan.cluster.inter_link = gpu.default_inter_link;
  plan.parallelism.data = profile.world_size;
  return plan;
}

/// It ran out though the limit was there: what it would have needed is more than what it reached.
bool ran_out(const RankProfile& profile) { return profile.out_of_memory && !profile.limit_lifted; }

}  // namespace

ProgramEstimate estimate_program(const std::vector<RankProfile>& profiles) {
  check_profiles(profiles);
  const RankProfile& first = profiles.front();
  const Plan plan = cluster_of(first);
  const Gpu& gpu = gpu_of(plan);
  const Fabric fabric = fabric_of(plan);
  ProgramEstimate estimate{
      .tool = first.tool, .command = first.program->command, .world_size = first.world_size};
  for (const RankProfile& profile : profiles) {
    const RankClass one{.representative_rank = profile.rank, .count = 1};
    RankClassEstimate row = class_memory(plan, one, profile, ParallelLayout(plan), fabric);
    row.limit_lifted = ran_out(profile);
    estimate.ranks.push_back(std::move(row));
  }
  estimate.verdict = memory_verdict(plan, gpu, estimate.ranks);
  estimate.assumptions = {
      fmt::format("the {} ranks that were run stand for all {}", profiles.size(), first.world_size),
      fmt::format("{} and {} link the GPUs", *plan.cluster.intra_link, *plan.cluster.inter_link)};
  estimate.not_modelled = {"time: only a plan says what ranks wait for",
                           "memory that libraries take outside PyTorch's allocator, other than the "
                           "context's, cuBLAS's and NCCL's"};
  return estimate;
}

}  // namespace estimator
