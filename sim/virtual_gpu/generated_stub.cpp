#include "sim/virtual_gpu/generated_stub.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "sim/virtual_gpu/spec.h"

namespace virtual_gpu {
namespace {

/// For the program that started this one.
void keep_refusal(const char* function, const char* help) {
  const char* const path = std::getenv(kRefusalsVariable);
  if (path == nullptr) return;
  std::ofstream(path, std::ios::app) << function << (*help == '\0' ? "" : ": ") << help << '\n';
}

}  // namespace

void report_refusal(const char* function, const char* returned, const char* help) {
  const bool has_help = *help != '\0';
  std::fprintf(stderr,
               "onerank: the virtual GPU has no answer for %s: it returns %s\n%s%s%s",
               function,
               returned,
               has_help ? "  help: " : "",
               help,
               has_help ? "\n" : "");
  keep_refusal(function, help);
}

void* new_handle() {
  static std::atomic<uintptr_t> next{0x1000};
  return reinterpret_cast<void*>(next.fetch_add(16));
}

}  // namespace virtual_gpu
