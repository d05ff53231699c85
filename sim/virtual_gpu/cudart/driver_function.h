// Functions of the driver's stub, which programs ask for by name.
#pragma once

namespace virtual_gpu {

/// The function, in its newest version; null if the driver's stub has none of that name, or is not
/// loaded.
void* find_driver_function(const char* name);

}  // namespace virtual_gpu
