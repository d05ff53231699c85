#include "sim/cli/ranks/rank_store.h"

#include <gtest/gtest.h>

#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

class GpusOfDriver : public OnerankProgram {
 protected:
  void add(const std::string& gpu, const std::string& name) {
    std::filesystem::create_directories(path("gpus/" + gpu));
    write("gpus/" + gpu + "/information", "Model: \t\t " + name + "\nIRQ:   \t\t 33\n");
  }
};

TEST_F(GpusOfDriver, AreNamedOnce) {
  EXPECT_EQ(gpus_of_driver(path("gpus")), "") << "without a driver";
  add("0000:00:1e.0", "NVIDIA H200");
  add("0000:00:1f.0", "NVIDIA H200");
  EXPECT_EQ(gpus_of_driver(path("gpus")), "NVIDIA H200");
  add("0000:00:20.0", "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(gpus_of_driver(path("gpus")), "NVIDIA A100-SXM4-80GB and NVIDIA H200");
}

}  // namespace
}  // namespace sim
