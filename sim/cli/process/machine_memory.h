// The memory that this machine can give.
#pragma once

#include <cstdint>
#include <string>

namespace sim {

/// MemAvailable of /proc/meminfo's text: what can be taken without swapping; 0 if it does not say.
int64_t available_bytes_in(const std::string& meminfo);

/// Of this machine; 0 if it does not say.
int64_t available_memory_bytes();

}  // namespace sim
