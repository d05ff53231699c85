#include <utility>

#include "estimator/hardware/hardware.h"
#include "estimator/resolve/plan_rules.h"
#include "estimator/resolve/resolve_plan.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {
namespace {

void check_type(Rules& rules) {
  const Plan& plan = rules.plan();
  const Gpu* gpu = find_gpu(plan.cluster.gpu);
  if (gpu == nullptr) return;
  rules.require(
      gpu->supports(plan.training.dtype),
      "the GPU cannot compute in this type",
      fmt::format("training.dtype = {}, cluster.gpu = {}", to_string(plan.training.dtype), gpu->id),
      "use fp16 or fp32, or a newer GPU");
}

void check_size_is_known(Rules& rules) {
  const ClusterConfig& c = rules.plan().cluster;
  const PlanContext& context = rules.context();
  const bool is_given = context.world_size && c.gpus_per_node.is_known();
  rules.require(
      c.nodes.is_known(),
      is_given ? "the GPUs do not fill whole machines" : "the size of the world is not known",
      is_given ? fmt::format("{} = {}, cluster.gpus_per_node = {}",
                             context.world_size_origin,
                             *context.world_size,
                             c.gpus_per_node)
               : "cluster.nodes is missing",
      is_given ? "give a multiple of it, or --gpus-per-node for other machines"
               : "give --nodes or --gpus, or cluster.nodes in a file, or set WORLD_SIZE");
}

void check_world(Rules& rules) {
  const ClusterConfig& c = rules.plan().cluster;
  const PlanContext& context = rules.context();
  const int64_t world = rules.plan().world_size();
  rules.require(
      world <= kLargestWorld,
      "the world is too large",
      fmt::format("cluster.nodes = {}, cluster.gpus_per_node = {}", c.nodes, c.gpus_per_node),
      fmt::format("Onerank handles up to {} ranks", kLargestWorld));
  if (context.world_size) {
    rules.require(
        world == *context.world_size,
        fmt::format("{} is not the plan's world", context.world_size_origin),
        fmt::format("{} = {}, cluster.nodes {} x cluster.gpus_per_node {} = {}",
                    context.world_size_origin,
                    *context.world_size,
                    c.nodes,
                    c.gpus_per_node,
                    world),
        fmt::format(
            "set {} to {}, or change the plan's cluster", context.world_size_origin, world));
  }
}

void check_degrees(Rules& rules) {
  const ParallelConfig& p = rules.plan().parallelism;
  const int64_t world = rules.plan().world_size();
  const int64_t needed = ranks_needed(p);
  rules.require(
      p.data.is_known() && needed == world,
      "the parallel degrees do not multiply to the world",
      fmt::format(
          "parallelism: tensor {} x pipeline {} x context {} x data {} {} {} ranks, world {}",
          p.tensor,
          p.pipeline,
          p.context,
          p.data.is_known() ? std::to_string(p.data) : "auto",
          p.data.is_known() ? "=" : "is at least",
          needed,
          world),
      world % model_ranks(p) == 0
          ? fmt::format("use data = {0} (--dp {0}), or --dp auto, which follows the other degrees",
                        world / model_ranks(p))
          : fmt::format("use a world that is a multiple of {}", model_ranks(p)));
}

}  // namespace

void check_hardware(Rules& rules) {
  const ClusterConfig& c = rules.plan().cluster;
  rules.require(find_gpu(c.gpu) != nullptr,
                c.gpu.empty() ? "the plan names no GPU" : "unknown GPU",
                fmt::format("cluster.gpu = \"{}\"", c.gpu),
                gpu_help(c.gpu));
  for (const auto& [key, link] : {std::pair{"cluster.intra_link", c.intra_link},
                                  std::pair{"cluster.inter_link", c.inter_link}}) {
    rules.require(!link.is_known() || find_link(link) != nullptr,
                  "unknown link",
                  fmt::format("{} = \"{}\"", key, link.value_or("")),
                  link_help(link.value_or("")));
  }
  const Link* inside = c.intra_link.is_known() ? find_link(c.intra_link) : nullptr;
  rules.require(inside == nullptr || inside->kind == "nvlink" || inside->kind == "pcie",
                "a network link cannot be the link inside a machine",
                fmt::format("cluster.intra_link = \"{}\"", c.intra_link.value_or("")),
                "use a link of the kinds nvlink and pcie, see `onerank list links`");
  rules.require(c.spine_oversubscription <= 1 || c.nodes_per_pod.has_value(),
                "the spine is oversubscribed, but where pods end is not known",
                fmt::format("cluster.spine_oversubscription = {}", c.spine_oversubscription),
                "give cluster.nodes_per_pod");
}

void check_cluster(Rules& rules) {
  const ClusterConfig& c = rules.plan().cluster;
  check_hardware(rules);
  check_type(rules);
  if (!c.nodes.is_known() || !c.gpus_per_node.is_known() || c.nodes < 1 || c.gpus_per_node < 1) {
    return check_size_is_known(rules);
  }
  check_world(rules);
  check_degrees(rules);
}

}  // namespace estimator
