#pragma once

/// A stream: nothing waits in it, since work completes at once. A null handle is the default
/// stream.
struct CUstream_st {
  unsigned flags;
  int priority;
  int device;
  unsigned long long id;
};
