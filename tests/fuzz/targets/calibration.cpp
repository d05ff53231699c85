// Calibrations, and what they make of a profile that is sound.
#include "estimator/compute/calibration.h"

#include "estimator/base/files.h"
#include "estimator/hardware/hardware.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/profile_uses.h"
#include "tests/paths.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<estimator::RankProfile> profiles =
      fuzz::read_profiles(estimator::read_file(tests::kShardProfiles + std::string("/llama.json")));
  return fuzz::read_and_use([&] {
    const auto calibration = estimator::read_calibration(fuzz::as_text(data, size), "calibration");
    check_calibration_is_of(
        calibration, *estimator::find_gpu(profiles.front().device.gpu), "calibration");
    fuzz::use_profiles(profiles, &calibration);
  });
}
