// The exit code of a verdict.
#pragma once

#include <string>

#include "estimator/base/errors.h"
#include "estimator/cluster/cluster_estimate.h"
#include "estimator/cluster/memory_health.h"
#include "sim/cli/input/cli_fwd.h"

namespace sim {

/// The flags --too-close, which sets the exit code for a verdict that is too close to call, and
/// --health, which names the thresholds of how full the GPU may be.
class VerdictGate {
 public:
  void add_to(CLI::App& app);

  /// Throws UserError when --too-close or --health has an unknown value. Call it before a long
  /// computation.
  void check() const;

  /// kDone if the plan fits, kVerdictIsNo if it does not. If the verdict is too close to call, it
  /// is what --too-close says, by default kVerdictIsNo. If --health is given and the level is a
  /// warning or worse, it is kVerdictIsNo.
  estimator::ExitCode exit_code(const estimator::Verdict& verdict) const;

  bool asks_for_health() const { return !health_.empty(); }
  /// By the thresholds of --health, or else the balanced ones.
  estimator::MemoryHealth health(const estimator::Verdict& verdict) const;

 private:
  std::string health_;
  std::string too_close_ = "fail";
};

}  // namespace sim
