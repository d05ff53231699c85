// The words before declarations in CUDA's headers, as a host compiler reads them: the alignments
// mean something, the others nothing. NVIDIA has its own file in a package of its compiler, which
// comes with no torch for CUDA 12; it is searched for after NVIDIA's.
#pragma once

#define CUDARTAPI
#define CUDARTAPI_CDECL

#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __align__(bytes)

#define __host__
#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))

#define __cudart_builtin__
#define __device_builtin__
#define __device_builtin_surface_type__
#define __device_builtin_texture_type__
