#include "estimator/cluster/whole_state.h"

#include <cmath>

#include "estimator/memory/context_memory.h"

namespace estimator {
namespace {

/// Whole machines where one is not enough.
int64_t in_whole_machines(int64_t gpus, int64_t gpus_per_node) {
  if (gpus <= gpus_per_node) return gpus;
  return (gpus + gpus_per_node - 1) / gpus_per_node * gpus_per_node;
}

/// Of a GPU, for the state: without the headroom and what the CUDA context takes at least.
int64_t usable_bytes(const Plan& plan, const Gpu& gpu) {
  return gpu.memory_bytes - plan.memory.headroom_bytes -
         context_memory(gpu, plan.memory.cuda_module_loading).low_bytes;
}

}  // namespace

std::optional<WholeState> whole_state(const Plan& plan,
                                      const Gpu& gpu,
                                      const std::vector<RankClass>& classes,
                                      const std::vector<const RankProfile*>& profiles) {
  WholeState whole{.parameters = parameter_count(plan.model, plan.padded_vocab_size())};
  double elements = 0, parameter_bytes = 0, gradient_bytes = 0, master_bytes = 0, moment_bytes = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const std::optional<ModelStateRecord>& state = profiles[i]->model_state;
    if (!state) return std::nullopt;
    const auto ranks = static_cast<double>(classes[i].count);
    elements += ranks * static_cast<double>(profiles[i]->parameters.count);
    parameter_bytes += ranks * static_cast<double>(state->parameter_bytes);
    gradient_bytes += ranks * static_cast<double>(state->gradient_bytes);
    master_bytes += ranks * static_cast<double>(state->master_weight_bytes);
    moment_bytes += ranks * static_cast<double>(state->optimizer_state_bytes);
  }
  if (elements == 0 || whole.parameters == 0) return std::nullopt;
  // FSDP2's ranks count only their own part of a parameter, so that there is one copy.
  const double copies = elements / static_cast<double>(whole.parameters);
  const double optimizer_copies = plan.parallelism.zero_stage > 0 ? 1 : copies;
  whole.parameter_bytes = std::llround(parameter_bytes / copies);
  whole.gradient_bytes = std::llround(gradient_bytes / copies);
  whole.master_weight_bytes = std::llround(master_bytes / optimizer_copies);
  whole.optimizer_state_bytes = std::llround(moment_bytes / optimizer_copies);
  whole.usable_bytes = usable_bytes(plan, gpu);
  if (whole.usable_bytes <= 0) return std::nullopt;
  const int64_t gpus = (whole.bytes() + whole.usable_bytes - 1) / whole.usable_bytes;
  whole.fewest_gpus = in_whole_machines(gpus, plan.cluster.gpus_per_node);
  return whole;
}

}  // namespace estimator
