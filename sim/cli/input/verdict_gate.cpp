#include "sim/cli/input/verdict_gate.h"

#include <fmt/format.h>

namespace sim {

using estimator::ExitCode;
using estimator::Fit;

void VerdictGate::add_to(CLI::App& app) {
  app.add_option("--too-close",
                 too_close_,
                 "the exit code for a verdict that is too close to call: pass (0) or fail (1)")
      ->type_name("WORD")
      ->capture_default_str()
      ->group("Output");
}

void VerdictGate::check() const {
  if (too_close_ == "pass" || too_close_ == "fail") return;
  throw estimator::UserError({.what = "unknown value of --too-close",
                              .where = fmt::format("--too-close = \"{}\"", too_close_),
                              .help = "use pass or fail"});
}

ExitCode VerdictGate::exit_code(Fit outcome) const {
  const bool passes = outcome == Fit::kFits || (outcome == Fit::kTooClose && too_close_ == "pass");
  return passes ? ExitCode::kDone : ExitCode::kVerdictIsNo;
}

}  // namespace sim
