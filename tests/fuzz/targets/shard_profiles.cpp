// Profiles of a plan's ranks: one, or a list of them that stand for all of the cluster.
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/profile_uses.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(fuzz::as_text(data, size));
  return fuzz::read_and_use([&] { fuzz::use_profiles(fuzz::read_profiles(text)); });
}
