// The world in which a launcher started this process, read from environment variables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/cli/process/environment.h"

namespace sim {

struct LaunchedWorld {
  std::string launcher;  ///< "torchrun", "srun" or "RANK and WORLD_SIZE"
  int64_t rank = 0;
  int64_t size = 1;
  std::string host;  ///< where the ranks meet
  int64_t port = 0;
  std::string store_prefix;  ///< differs after each restart
  bool keeps_store = false;  ///< rank 0, unless the launcher keeps the store itself
};

/// The world that torchrun, Slurm's srun, or another launcher that sets RANK, WORLD_SIZE,
/// MASTER_ADDR and MASTER_PORT, started; empty if there was none. MASTER_ADDR and MASTER_PORT take
/// precedence over srun's variables. Throws UserError if only a part of the variables is set.
std::optional<LaunchedWorld> find_launched_world(const Environment& environment);

/// "rank 2 of 4 in the world that torchrun started; it meets at port 29500 on node1"
std::string to_text(const LaunchedWorld& world);

/// The first host of Slurm's list: "node[01-03,07],login" -> "node01".
std::string first_host(const std::string& slurm_node_list);

}  // namespace sim
