// How ranks are run: the flags that `run`, `estimate` and `check` share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "sim/cli/rank_process.h"

namespace sim {

class RankOptions {
 public:
  void add_to(CLI::App& app);

  /// Throws UserError for an unknown device and a number of jobs that is none.
  RankJob job(std::vector<int64_t> ranks) const;

 private:
  std::string device_ = "auto";
  std::string jobs_;
  bool all_micro_batches_ = false;
};

}  // namespace sim
