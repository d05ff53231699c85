// The flags that stand for keys of a plan, as `onerank check` takes them.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "sim/cli/input/plan_options.h"
#include "tests/fuzz/arguments.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/plan_uses.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> arguments = fuzz::lines_of(fuzz::as_text(data, size));
  return fuzz::read_and_use([&] {
    CLI::App app;
    sim::PlanOptions options;
    options.add_to(app);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError&) {
      throw fuzz::Refused();  // the command line makes a UserError of it
    }
    fuzz::use_resolved_plan(options.resolve({}).plan);
  });
}
