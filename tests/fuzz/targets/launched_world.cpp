// What a launcher's variables say, as lines NAME=VALUE.
#include "sim/cli/input/launched_world.h"

#include "tests/fuzz/arguments.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sim::Environment environment;
  for (const std::string& line : fuzz::lines_of(fuzz::as_text(data, size))) {
    const size_t equals = line.find('=');
    if (equals != std::string::npos) environment[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return fuzz::read_and_use([&] {
    const auto world = sim::find_launched_world(environment);
    if (!world) return;
    if (world->rank < 0 || world->rank >= world->size) fuzz::fail("a rank outside its world");
    if (world->port < 1 || world->port > 65535) fuzz::fail("a port that is none");
    sim::to_text(*world);
  });
}
