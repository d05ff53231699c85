#pragma once

#include <atomic>

/// The functions that generate_stubs.py writes. They are weak: a hand-written function of the same
/// name takes their place. Arguments are ignored, which the C calling convention allows.
namespace virtual_gpu {

/// Says on stderr that `function` was refused, what it returns instead, and the way out, if there
/// is one.
void report_refusal(const char* function, const char* returned, const char* help = "");

/// A handle that no other call returned. It points at nothing.
void* new_handle();

}  // namespace virtual_gpu

#define VIRTUAL_GPU_STUB extern "C" __attribute__((weak)) long

/// Says once that there is no answer, and returns the library's own code for it.
#define VIRTUAL_GPU_REFUSED(function, code, code_name, help)        \
  VIRTUAL_GPU_STUB function() {                                     \
    static std::atomic_flag told;                                   \
    if (!told.test_and_set()) {                                     \
      virtual_gpu::report_refusal(#function "()", code_name, help); \
    }                                                               \
    return code;                                                    \
  }

/// Returns success.
#define VIRTUAL_GPU_HARMLESS(function) \
  VIRTUAL_GPU_STUB function() { return 0; }

/// Writes a new handle through its first argument and returns success.
#define VIRTUAL_GPU_CREATES_HANDLE(function) \
  VIRTUAL_GPU_STUB function(void** handle) { \
    *handle = virtual_gpu::new_handle();     \
    return 0;                                \
  }
