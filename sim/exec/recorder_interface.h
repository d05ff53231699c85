// Between the preloaded hooks, which exist before torch does, and the recorder, which links torch
// and is loaded by the hooks once torch is there.
#pragma once

#include <stdint.h>

extern "C" {

struct onerank_exec_recorder {
  /// The program is about to use the GPU for the first time. May be called often.
  void (*gpu_starts)();
  /// The process ends without running its exit handlers.
  void (*process_ends)();
  // Each makes, at `place`, an object that answers for absent peers and is of the class whose
  // constructor was called, or derived from it (Gloo: of its base class, c10d::Backend).
  // Arguments are those of the constructors; what C++ passes by hidden reference is a pointer.
  void (*make_tcp_store)(void* place, void* host, const void* options);
  void (*make_file_store)(void* place, void* path, int workers);
  void (*make_gloo)(void* place, const void* store, int rank, int size, void* options);
};

/// What the hooks ask the recorder's library for; never null.
const onerank_exec_recorder* onerank_exec_get_recorder();

// What the observer in Python (observe.py) calls, once the recorder is there. Texts are UTF-8.

/// A module's forward begins, at `path` from the root: "layers.3.mlp"; and ends.
void onerank_exec_enter_module(const char* path);
void onerank_exec_leave_module();
/// Whether the program has been told to end, after its last step.
int onerank_exec_was_ended();
/// The block at `address` is for `category` (estimator::MemoryCategory) of the parameter `name`.
void onerank_exec_memory_lasts(uint64_t address, const char* category, const char* name);
/// torch.compile made the region of this number, "3/0". Where it `steps` an optimizer, `before` and
/// `after` are called around it, in the thread that runs it, `after` only where nothing was raised.
void onerank_exec_region_made(const char* region, int steps, void (*before)(), void (*after)());
/// What torch.distributed says that this process is.
void onerank_exec_is_rank(int64_t rank, int64_t world_size);
/// All parameters that are known now, as a JSON list of estimator::ParameterRecord.
void onerank_exec_parameters(const char* json);
}
