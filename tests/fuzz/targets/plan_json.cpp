#include "sim/cli/input/plan_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/plan_uses.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string& path = fuzz::in_file(data, size, ".json");
  return fuzz::read_and_use(
      [&] { fuzz::use_plan(sim::read_plan_or_other_file(path).tree.json()); });
}
