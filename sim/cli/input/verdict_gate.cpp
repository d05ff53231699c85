#include "sim/cli/input/verdict_gate.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "sim/cli/input/offered_words.h"

namespace sim {

using estimator::ExitCode;
using estimator::Fit;

void VerdictGate::add_to(CLI::App& app) {
  CLI::Option* too_close =
      app.add_option("--too-close",
                     too_close_,
                     "the exit code for a verdict that is too close to call: pass (0) or fail (1)");
  offer(too_close->type_name("WORD")->capture_default_str()->group("Output"), {"pass", "fail"});
  CLI::Option* thresholds = app.add_option(
      "--health",
      health_,
      "fail, too, where the peak is above the warning threshold: balanced (92 % of the "
      "GPU's memory), aggressive (95 %) or conservative (85 %)");
  offer(thresholds->type_name("NAME")->group("Output"),
        names_of_rows(estimator::health_thresholds()));
}

void VerdictGate::check() const {
  if (!health_.empty() && estimator::find_health_thresholds(health_) == nullptr) {
    throw estimator::UserError({.what = "unknown thresholds",
                                .where = fmt::format("--health = \"{}\"", health_),
                                .help = "use balanced, aggressive or conservative"});
  }
  if (too_close_ == "pass" || too_close_ == "fail") return;
  throw estimator::UserError({.what = "unknown value of --too-close",
                              .where = fmt::format("--too-close = \"{}\"", too_close_),
                              .help = "use pass or fail"});
}

ExitCode VerdictGate::exit_code(const estimator::Verdict& verdict) const {
  const bool is_too_full =
      asks_for_health() && health(verdict).level >= estimator::HealthLevel::kWarning;
  const bool is_close = verdict.outcome == Fit::kTooClose && too_close_ == "pass";
  const bool passes = !is_too_full && (verdict.fits() || is_close);
  return passes ? ExitCode::kDone : ExitCode::kVerdictIsNo;
}

estimator::MemoryHealth VerdictGate::health(const estimator::Verdict& verdict) const {
  return memory_health(verdict,
                       *estimator::find_health_thresholds(health_.empty() ? "balanced" : health_));
}

}  // namespace sim
