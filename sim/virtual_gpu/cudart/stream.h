#pragma once

/// A stream: nothing waits in it, since work has no effect that could come late. What the host
/// knows of it is in the timeline. A null handle is the default stream.
struct CUstream_st {
  unsigned flags;
  int priority;
  int device;
  int sequence;  // of the timeline
  unsigned long long id;
};

namespace virtual_gpu {

/// Two small numbers stand for default streams (cudaStreamLegacy, cudaStreamPerThread).
bool is_default(CUstream_st* stream);

/// The stream's sequence in the device's timeline.
int sequence_of(CUstream_st* stream);

/// Counts an operation of the stream. Before there is a device it does nothing.
void add_work(CUstream_st* stream);

}  // namespace virtual_gpu
