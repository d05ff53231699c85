// `onerank comm`: flags, sizes and all that it computes from them.
#include "tests/fuzz/arguments.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> arguments = fuzz::lines_of(fuzz::as_text(data, size));
  arguments.insert(arguments.begin(), "comm");
  return fuzz::read_and_use([&] { fuzz::use_command(arguments); });
}
