// A reader with every fault that the driver must see: the input names the fault. driver_test.py
// asks for each of them.
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "estimator/base/errors.h"
#include "tests/fuzz/fuzz.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;

volatile int largest = 2147483647;
char* volatile nowhere = nullptr;
char* volatile kept = nullptr;

void take_memory(size_t bytes) {
  const auto memory = std::make_unique<char[]>(bytes);
  std::memset(memory.get(), 1, bytes);
  kept = memory.get();  // no compiler leaves the memory out
}

[[noreturn]] void take_memory_for_ever() {
  std::vector<std::unique_ptr<char[]>> all;
  for (;;) {
    all.push_back(std::make_unique<char[]>(kMiB));
    std::memset(all.back().get(), 1, kMiB);
    usleep(1000);
  }
}

[[noreturn]] void compute_for_ever() {
  for (;;) largest = largest ^ 1;
}

void leak() {
  kept = new char[100];
  kept = nullptr;
}

void read_as(std::string_view fault) {
  if (fault == "refuse") throw estimator::UserError({.what = "no", .where = "here", .help = "try"});
  if (fault == "crash") *nowhere = 1;
  if (fault == "compute") compute_for_ever();
  if (fault == "wait") pause();
  if (fault == "grow") take_memory_for_ever();
  if (fault == "peak") take_memory(300 * kMiB);
  if (fault == "bug") throw std::logic_error("a broken promise");
  if (fault == "odd throw") throw 1;
  if (fault == "leave") std::exit(0);
  if (fault == "overflow") largest = largest + 1;
  if (fault == "leak") return leak();
  if (fault != "sound") throw fuzz::Refused();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::read_and_use([&] { read_as(fuzz::as_text(data, size)); });
}
