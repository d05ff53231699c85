#pragma once

#include <atomic>

/// The functions that generate_stubs.py writes. They are weak symbols, so a hand-written function
/// of the same name replaces them. They ignore their arguments, which the C calling convention
/// allows.
namespace virtual_gpu {

/// Says on stderr that `function` was refused, what it returns, and what the user can do, if there
/// is anything. Keeps it in the file of kRefusalsVariable.
void report_refusal(const char* function, const char* returned, const char* help = "");

/// A handle that no other call has returned. It does not point to an object.
void* new_handle();

}  // namespace virtual_gpu

#define VIRTUAL_GPU_STUB extern "C" __attribute__((weak)) long

/// A function that reports the refusal once and returns the library's error code.
#define VIRTUAL_GPU_REFUSED(function, code, code_name, help)        \
  VIRTUAL_GPU_STUB function() {                                     \
    static std::atomic_flag told;                                   \
    if (!told.test_and_set()) {                                     \
      virtual_gpu::report_refusal(#function "()", code_name, help); \
    }                                                               \
    return code;                                                    \
  }

/// A function that does nothing and returns success.
#define VIRTUAL_GPU_HARMLESS(function) \
  VIRTUAL_GPU_STUB function() { return 0; }

/// A function that writes a new handle to its first argument and returns success.
#define VIRTUAL_GPU_CREATES_HANDLE(function) \
  VIRTUAL_GPU_STUB function(void** handle) { \
    *handle = virtual_gpu::new_handle();     \
    return 0;                                \
  }
