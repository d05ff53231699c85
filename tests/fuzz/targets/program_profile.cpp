// Profiles of a program's ranks, as `onerank exec` writes them.
#include "estimator/program/program_estimate.h"
#include "sim/cli/report/estimate_report.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/profile_uses.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(fuzz::as_text(data, size));
  return fuzz::read_and_use([&] {
    const auto estimate = estimator::estimate_program(fuzz::read_profiles(text));
    fuzz::expect_sound_numbers(estimator::to_json(estimate), "estimate");
    fuzz::expect_written_whole(estimator::to_json(estimate), "the estimate");
    fuzz::expect_sound_text(sim::program_estimate_text(estimate), "estimate");
  });
}
