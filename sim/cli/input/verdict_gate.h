// The exit code of a verdict.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "estimator/base/errors.h"
#include "estimator/cluster/cluster_estimate.h"

namespace sim {

/// The flag --too-close, which sets the exit code for a verdict that is too close to call.
class VerdictGate {
 public:
  void add_to(CLI::App& app);

  /// Throws UserError when --too-close is neither pass nor fail. Call it before a long computation.
  void check() const;

  /// kDone if the plan fits, kVerdictIsNo if it does not. If the verdict is too close to call, it
  /// is what --too-close says, by default kVerdictIsNo.
  estimator::ExitCode exit_code(estimator::Fit outcome) const;

 private:
  std::string too_close_ = "fail";
};

}  // namespace sim
