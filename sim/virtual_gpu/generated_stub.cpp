#include "sim/virtual_gpu/generated_stub.h"

#include <cstdint>
#include <cstdio>

namespace virtual_gpu {

void report_refusal(const char* function, const char* returned, const char* help) {
  const bool has_help = *help != '\0';
  std::fprintf(stderr,
               "onerank: the virtual GPU has no answer for %s: it returns %s\n%s%s%s",
               function,
               returned,
               has_help ? "  help: " : "",
               help,
               has_help ? "\n" : "");
}

void* new_handle() {
  static std::atomic<uintptr_t> next{0x1000};
  return reinterpret_cast<void*>(next.fetch_add(16));
}

}  // namespace virtual_gpu
