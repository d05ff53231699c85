#pragma once

/// A stream. No work waits in it, since work has no effects that could come late. The timeline has
/// what the host knows about it. A null handle is the default stream.
struct CUstream_st {
  unsigned flags;
  int priority;
  int device;
  int sequence;  // its number in the timeline
  unsigned long long id;
};

namespace virtual_gpu {

/// Whether it is a default stream: null, or one of the two small numbers that stand for default
/// streams (cudaStreamLegacy, cudaStreamPerThread).
bool is_default(CUstream_st* stream);

/// The device of the stream; of a default stream the current one.
int device_of(CUstream_st* stream);

/// The stream's sequence in the device's timeline.
int sequence_of(CUstream_st* stream);

/// The host waits for all work that the stream, or the current device, was given.
void host_waits_for_stream(int sequence);
void host_waits_for_device();

/// Counts an operation of the stream. Does nothing before there is a device.
void add_work(CUstream_st* stream);

}  // namespace virtual_gpu
