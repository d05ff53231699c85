#pragma once

namespace virtual_gpu {

/// What NVIDIA's driver for CUDA 13.0 says of itself.
inline constexpr const char* kDriverVersion = "580.82.07";
inline constexpr const char* kDriversCuda = "13.0";

}  // namespace virtual_gpu
