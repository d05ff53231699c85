// The exit code of a verdict.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "estimator/base/errors.h"
#include "estimator/cluster/cluster_estimate.h"

namespace sim {

/// The flag --too-close, which says what a verdict that is too close to call exits with.
class VerdictGate {
 public:
  void add_to(CLI::App& app);

  /// Throws UserError when --too-close is neither pass nor fail: to be called before a long
  /// computation.
  void check() const;

  /// kDone when it fits, kVerdictIsNo when it does not; between the two what --too-close says, by
  /// default kVerdictIsNo.
  estimator::ExitCode exit_code(estimator::Fit outcome) const;

 private:
  std::string too_close_ = "fail";
};

}  // namespace sim
