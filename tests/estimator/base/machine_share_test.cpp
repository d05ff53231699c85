#include "estimator/base/machine_share.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <string>

namespace estimator {
namespace {

namespace fs = std::filesystem;

/// A machine with 8 GiB available, as a folder.
class ShareOfMachine : public testing::Test {
 protected:
  ShareOfMachine() {
    std::string name = (fs::temp_directory_path() / "onerank-share-XXXXXX").string();
    root_ = mkdtemp(name.data());
    write("proc/meminfo", "MemTotal:   99999999 kB\nMemAvailable:    8388608 kB\n");
  }
  ~ShareOfMachine() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  fs::path root_;
};

constexpr int64_t kGib = int64_t{1} << 30;

TEST_F(ShareOfMachine, IsWhatIsAvailableWithoutGroups) {
  EXPECT_EQ(machine_share(root_).memory_bytes, 8 * kGib);
  EXPECT_GE(machine_share(root_).processors, 1);
  write("proc/meminfo", "MemTotal:   99999999 kB\n");
  EXPECT_EQ(machine_share(root_).memory_bytes, 0) << "not known";
}

TEST_F(ShareOfMachine, IsThatOfTheContainer) {
  write("proc/self/cgroup", "1:cpu:/\n0::/\n");
  write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/memory.max", "4294967296\n");
  write("sys/fs/cgroup/memory.current", "3221225472\n");
  write("sys/fs/cgroup/memory.stat", "anon 5\ninactive_file 1073741824\nactive_file 7\n");
  EXPECT_EQ(machine_share(root_).memory_bytes, 2 * kGib) << "4 - 3 + 1";
  EXPECT_EQ(machine_share(root_).processors, 1) << "one and a half";
}

TEST_F(ShareOfMachine, IsTheLeastOfTheGroupsAround) {
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/step/memory.max", "max\n");
  write("sys/fs/cgroup/job/step/memory.current", "1073741824\n");
  write("sys/fs/cgroup/job/memory.max", "3221225472\n");
  write("sys/fs/cgroup/job/memory.current", "1073741824\n");
  write("sys/fs/cgroup/job/cpu.max", "max 100000\n");
  EXPECT_EQ(machine_share(root_).memory_bytes, 2 * kGib);
}

}  // namespace
}  // namespace estimator
