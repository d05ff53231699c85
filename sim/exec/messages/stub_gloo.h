// Gloo contacts its peers when a group is made. So a Gloo group is replaced by the stub of
// comm_stub.
#pragma once

namespace sim {

/// Constructs the stub, another c10d::Backend, at `place`, in the memory of a
/// c10d::ProcessGroupGloo.
void make_gloo(void* place, const void* store, int rank, int size, void* options);

}  // namespace sim
