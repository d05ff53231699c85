// The variables that torchrun sets for a worker (torch/distributed/elastic/agent/server/
// local_elastic_agent.py and torch/distributed/run.py of torch 2.11).

#include <algorithm>
#include <string>

#include "estimator/base/units.h"
#include "sim/cli/programs/exec_process.h"
#include "sim/cli/programs/srun.h"

namespace sim {
namespace {

void set_default(Environment& environment, const std::string& name, const std::string& value) {
  environment.emplace(name, value);
}

}  // namespace

int64_t local_rank(const ExecJob& job, int64_t rank) {
  return job.device == estimator::DeviceKind::kCuda ? 0 : rank % job.gpus_per_node;
}

Environment launcher_environment(const ExecJob& job, int64_t rank, Environment environment) {
  const int64_t per_node = std::min(job.gpus_per_node, job.world_size);
  const int64_t nodes = estimator::divide_up(job.world_size, per_node);
  const auto set = [&](const char* name, const std::string& value) { environment[name] = value; };
  set(kRankVariable, std::to_string(rank));
  set(kWorldSizeVariable, std::to_string(job.world_size));
  if (rank >= job.world_size) environment.erase(kWorldSizeVariable);
  set("LOCAL_RANK", std::to_string(local_rank(job, rank)));
  set("LOCAL_WORLD_SIZE", std::to_string(per_node));
  set("GROUP_RANK", std::to_string(rank / per_node));
  set("GROUP_WORLD_SIZE", std::to_string(nodes));
  set("ROLE_NAME", "default");
  set("ROLE_RANK", std::to_string(rank));
  set("ROLE_WORLD_SIZE", std::to_string(job.world_size));
  set("MASTER_ADDR", "127.0.0.1");
  set_default(environment, "MASTER_PORT", "29500");
  set("TORCHELASTIC_RESTART_COUNT", "0");
  set("TORCHELASTIC_MAX_RESTARTS", "0");
  set("TORCHELASTIC_RUN_ID", "onerank");
  set("TORCHELASTIC_USE_AGENT_STORE", "True");
  set("TORCH_ELASTIC_WORKER_IDENTICAL",
      "1");  // torchrun asks no other node how many workers it has
  set_default(environment, "TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  if (job.slurm_tasks > 0 || environment.contains("SLURM_PROCID")) {
    set_slurm_variables({.world_size = job.world_size,
                         .gpus_per_node = job.gpus_per_node,
                         .tasks = job.slurm_tasks > 0 ? job.slurm_tasks : job.world_size,
                         .nodes = job.slurm_nodes},
                        rank,
                        environment);
  }
  if (per_node > 1) set_default(environment, "OMP_NUM_THREADS", "1");
  return environment;
}

}  // namespace sim
