#include "sim/cli/process/machine_memory.h"

#include <fstream>
#include <iterator>
#include <sstream>

namespace sim {

int64_t available_bytes_in(const std::string& meminfo) {
  std::istringstream lines(meminfo);
  for (std::string name; lines >> name;) {
    int64_t kibibytes = 0;
    if (name == "MemAvailable:" && lines >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

int64_t available_memory_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  return available_bytes_in({std::istreambuf_iterator<char>(meminfo), {}});
}

}  // namespace sim
