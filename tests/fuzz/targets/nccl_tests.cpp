// What nccl-tests wrote, as text and as JSON.
#include <fmt/format.h>

#include <cmath>

#include "estimator/communication/measured_collectives.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(fuzz::as_text(data, size));
  return fuzz::read_and_use([&] {
    const auto measured = estimator::read_nccl_tests(text, "nccl-tests");
    for (int64_t bytes = 1; bytes <= int64_t{1} << 50; bytes *= 1024) {
      const double seconds = measured.seconds(bytes);
      const double rate =
          estimator::bus_bytes_per_second(measured.kind, measured.ranks, bytes, seconds);
      if (!(seconds > 0) || !std::isfinite(seconds) || !(rate >= 0) || !std::isfinite(rate)) {
        fuzz::fail(fmt::format("{} bytes take {} s at {} bytes/s", bytes, seconds, rate));
      }
    }
  });
}
