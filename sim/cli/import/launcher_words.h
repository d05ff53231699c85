// The machines and GPUs that launchers are asked for: #SBATCH, srun, torchrun.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/import/imported_plan.h"
#include "sim/cli/import/shell/shell_script.h"

namespace sim {

struct LaunchedCluster {
  std::optional<int64_t> nodes;
  std::optional<int64_t> gpus_per_node;
  std::optional<int64_t> gpus;  ///< of all machines
  /// A task is a rank, with a GPU of its own, unless each task starts ranks itself (torchrun).
  std::optional<int64_t> tasks_per_node;
  std::optional<int64_t> tasks;
  bool tasks_start_ranks = false;
  bool is_one_rank_by_default = false;  ///< torchrun, which nothing tells how many ranks to start
  std::string gpu;                      ///< "h100" of gpu:h100:8
};

/// Whether a launcher's key says how many machines there are.
bool says_machines(const std::string& key);

/// Whether the launcher is accelerate, which starts no program of Megatron-LM.
bool starts_with_accelerate(const std::vector<ShellWord>& launcher);

/// Takes what the words say, and leaves the rest as it is.
void read_launcher_words(const std::vector<ShellWord>& words, LaunchedCluster& cluster);

/// The variables that Slurm sets for it.
std::map<std::string, std::string> slurm_variables(const LaunchedCluster& cluster);

/// Writes cluster.gpu, cluster.nodes and cluster.gpus_per_node as far as they are known, and notes
/// where tasks start a number of ranks that is not.
void set_cluster(const LaunchedCluster& cluster, ImportedPlan& plan);

}  // namespace sim
