// Gloo needs its peers when a group is made. Here a group of Gloo is the stub of comm_stub.
#pragma once

namespace sim {

/// A constructor for the memory of a c10d::ProcessGroupGloo; makes another c10d::Backend in it.
void make_gloo(void* place, const void* store, int rank, int size, void* options);

}  // namespace sim
