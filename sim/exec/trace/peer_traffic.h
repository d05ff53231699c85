// What an operator moves between the memory of this rank and that of others, which symmetric
// memory has mapped.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <string_view>

namespace sim {

/// Bytes that this rank's link to other GPUs carries for an operator that begins, in the busier of
/// its two directions. PyTorch's operators of symmetric memory move what their algorithm moves
/// among the members of their group (CUDASymmetricMemoryOps.cu); any other operator moves each of
/// its tensors that lies in mapped memory once. 0 on a real GPU.
int64_t peer_bytes(const at::RecordFunction& begun);

/// Whether a kernel with this readable name only sends or awaits signals of symmetric memory.
bool is_signal(std::string_view kernel);

/// Whether such a kernel moves nothing at all: it lets time pass (torch.cuda._sleep).
bool is_pause(std::string_view kernel);

}  // namespace sim
