#include "sim/cli/values/layer_pattern.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestPattern = 100'000;
  const std::string text(fuzz::as_text(data, size));
  return fuzz::read_and_use([&] {
    if (sim::parse_layer_pattern(text, "--moe-layer-freq").size() > kLongestPattern) {
      fuzz::fail("a pattern of more layers than any model has");
    }
  });
}
