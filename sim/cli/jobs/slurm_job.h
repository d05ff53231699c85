// A sweep or a search on several machines: a job array of Slurm, of which each part executes its
// share of the ranks into a folder that all share (RankStore), and a merge, which is the same
// command over that folder and finds nothing left to execute. A job that is submitted again goes on
// where it was.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/cli/input/cli_fwd.h"
#include "sim/cli/jobs/cluster_job.h"

namespace sim {

/// One of `count` shares of the same work, from 0.
struct Part {
  int64_t number = 0;
  int64_t count = 1;

  /// Whether the piece of work with this number, from 0, is in it.
  bool has(int64_t work) const { return work % count == number; }
};

class SlurmOptions {
 public:
  /// Adds --slurm, --parts and --part.
  void add_to(CLI::App& app);

  bool is_job() const { return !folder_.empty(); }
  /// That of --part; empty without it. Throws UserError if it is none, or `job` has no store.
  std::optional<Part> part(const ClusterJob& job) const;

  /// Writes the scripts of the job for the command line that `app` has parsed into the folder of
  /// --slurm, and returns what to say. Throws UserError if --parts is no number, or the folder
  /// cannot be written.
  std::string write_job(const CLI::App& app, const ClusterJob& job) const;

 private:
  std::string folder_;
  std::string parts_ = "4";
  std::string part_;
};

/// What a part says when the store has its ranks.
std::string part_text(const Part& part, int64_t ranks);

}  // namespace sim
