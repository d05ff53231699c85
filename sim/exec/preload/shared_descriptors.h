// The sockets over which PyTorch's symmetric memory sends descriptors of memory between the
// processes of a machine.
#pragma once

namespace sim {

/// Whether `socket` is such a socket of this process, and nothing has come to it: then whoever
/// receives waits for a rank that is not there.
bool waits_for_absent_rank(int socket);

/// Sends `descriptor` to `socket`, a datagram socket of this process that has a name. Returns false
/// if the system refuses.
bool send_descriptor_to(int socket, int descriptor);

}  // namespace sim
