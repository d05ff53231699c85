// Between the preloaded hooks, which exist before torch does, and the recorder, which links torch
// and is loaded by the hooks once torch is there.
#pragma once

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

/// The recorder's only symbol; never null.
const onerank_exec_recorder* onerank_exec_get_recorder();
}
