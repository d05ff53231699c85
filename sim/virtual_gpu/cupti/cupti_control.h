#pragma once

#include <stdint.h>

/// The interface between the stub of CUPTI and the program that hosts it, which knows when the
/// device would have worked. Find the functions with dlsym.
extern "C" {

enum onerank_cupti_kind { ONERANK_CUPTI_KERNEL, ONERANK_CUPTI_COPY, ONERANK_CUPTI_FILL };

/// What the device did for a call of the host. Times are those of the system's clock.
struct onerank_cupti_work {
  enum onerank_cupti_kind kind;
  uint32_t call;     ///< its number, from onerank_cupti_called()
  const char* name;  ///< of a kernel
  int device;
  int stream;
  uint64_t start_nanoseconds;
  uint64_t end_nanoseconds;
  uint64_t bytes;  ///< of a copy or fill
  int direction;   ///< of a copy: a number of cudaMemcpyKind
};

/// `starts` is called when a profiler wants to be told of the device's works.
void onerank_cupti_set_host(void (*starts)(void* context), void* context);

/// Whether one does.
int onerank_cupti_is_tracing(void);

/// This thread asks the device for such a work. Returns the number of the call.
uint32_t onerank_cupti_called(enum onerank_cupti_kind kind);

void onerank_cupti_ran(const struct onerank_cupti_work* work);
}
