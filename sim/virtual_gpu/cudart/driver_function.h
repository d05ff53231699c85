// Functions of the driver's stub, which programs ask for by name.
#pragma once

namespace virtual_gpu {

/// The function, in the newest version that a program of CUDA `cuda_version` (12010: 12.1) knows.
/// Null if the driver's stub has none of that name, or is not loaded.
void* find_driver_function(const char* name, unsigned cuda_version);

}  // namespace virtual_gpu
