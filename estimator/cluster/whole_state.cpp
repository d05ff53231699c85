#include "estimator/cluster/whole_state.h"

#include <cmath>
#include <functional>
#include <numeric>

#include "estimator/memory/context_memory.h"
#include "estimator/plan/adapters.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/muon_parameters.h"
#include "estimator/plan/optimizer_moments.h"

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

/// How many copies of each parameter's state the ranks hold together.
struct Copies {
  double parameters = 0;
  double gradients = 0;
  double optimizer = 0;
};

double count_elements(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>());
}

/// Of a rank: copies of parameters that another stage owns.
double shared_elements(const ParametersRecord& parameters) {
  double elements = 0;
  for (const ParameterRecord& parameter : parameters.tensors) {
    if (parameter.shared_copy) elements += count_elements(parameter.shape);
  }
  return elements;
}

/// Whether data ranks own whole parameters, or parameters have unequal states, so that the state of
/// the rank that was run is no measure of the others' and of copies.
bool has_unequal_owners(const Plan& plan) {
  const bool owns_whole =
      plan.parallelism.zero_stage > 0 && traits_of(plan.training.framework).whole_parameters;
  return owns_whole || plan.training.optimizer == Optimizer::kMuon;
}

/// Of an element.
double moment_bytes_of(const TrainingConfig& training, const ParameterRecord& parameter) {
  const bool is_of_vocabulary = parameter.name.ends_with("word_embeddings.weight") ||
                                parameter.name.ends_with("output_layer.weight");
  const auto dims = static_cast<int64_t>(parameter.shape.size());
  const int64_t moments = moments_of(training.optimizer, is_of_muon(dims, is_of_vocabulary));
  return static_cast<double>(moment_bytes(training) * moments);
}

/// Of all parameters of a rank but copies, as if it kept their state alone.
double whole_moment_bytes(const Plan& plan, const ParametersRecord& parameters) {
  double bytes = 0;
  for (const ParameterRecord& parameter : parameters.tensors) {
    if (parameter.shared_copy) continue;
    bytes += moment_bytes_of(plan.training, parameter) * count_elements(parameter.shape);
  }
  return bytes;
}

/// `elements` in all ranks, of which `shared` are copies that another stage owns.
Copies copies_of(const Plan& plan, double elements, double shared, int64_t parameters) {
  const ParallelConfig& p = plan.parallelism;
  const bool deepspeed = traits_of(plan.training.framework).deepspeed_engine;
  // Ranks count only their own part of a parameter, and keep the state of that part.
  const bool counts_own = plan.fully_sharded() || (deepspeed && p.zero_stage == 3);
  const auto all = static_cast<double>(parameters);
  const double held = elements / all;
  const double of_stages = 1 + shared / static_cast<double>(plan.replicas()) / all;
  Copies copies{.parameters = held, .gradients = held, .optimizer = held};
  if (counts_own) return copies;
  if (p.zero_stage > 0) {
    copies.optimizer = static_cast<double>(p.num_distributed_optimizer_instances) * of_stages;
  }
  if (p.divides_gradients()) copies.gradients = of_stages;
  return copies;
}

}  // namespace

std::optional<WholeState> whole_state(const Plan& plan,
                                      const Gpu& gpu,
                                      const std::vector<RankClass>& classes,
                                      const std::vector<const RankProfile*>& profiles) {
  WholeState whole{.parameters = held_parameter_count(plan)};
  double elements = 0, shared = 0;
  double parameter_bytes = 0, gradient_bytes = 0, master_bytes = 0, moment_bytes = 0;
  double whole_moments = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const std::optional<ModelStateRecord>& state = profiles[i]->model_state;
    if (!state) return std::nullopt;
    const auto ranks = static_cast<double>(classes[i].count);
    elements += ranks * static_cast<double>(profiles[i]->parameters.count);
    shared += ranks * shared_elements(profiles[i]->parameters);
    parameter_bytes += ranks * static_cast<double>(state->parameter_bytes);
    gradient_bytes += ranks * static_cast<double>(state->gradient_bytes);
    master_bytes += ranks * static_cast<double>(state->master_weight_bytes);
    moment_bytes += ranks * static_cast<double>(state->optimizer_state_bytes);
    whole_moments += ranks * whole_moment_bytes(plan, profiles[i]->parameters);
  }
  if (elements == 0 || whole.parameters == 0) return std::nullopt;
  const Copies copies = copies_of(plan, elements, shared, whole.parameters);
  whole.parameter_bytes = std::llround(parameter_bytes / copies.parameters);
  whole.gradient_bytes = std::llround(gradient_bytes / copies.gradients);
  whole.master_weight_bytes = std::llround(master_bytes / copies.optimizer);
  whole.optimizer_state_bytes = std::llround(moment_bytes / copies.optimizer);
  if (has_unequal_owners(plan)) {
    constexpr double kMasterWeight = 4;
    const auto all = static_cast<double>(whole.parameters);
    whole.optimizer_state_bytes = std::llround(whole_moments / ((elements - shared) / all));
    if (master_bytes > 0) whole.master_weight_bytes = std::llround(kMasterWeight * all);
  }
  whole.usable_bytes = usable_bytes(plan, gpu);
  if (whole.usable_bytes <= 0) return std::nullopt;
  const auto gpus_for = [&](int64_t bytes) {
    return in_whole_machines((bytes + whole.usable_bytes - 1) / whole.usable_bytes,
                             plan.cluster.gpus_per_node);
  };
  whole.fewest_gpus = gpus_for(whole.bytes());
  whole.fewest_gpus_offloaded = gpus_for(whole.parameter_bytes + whole.gradient_bytes);
  return whole;
}

}  // namespace estimator
