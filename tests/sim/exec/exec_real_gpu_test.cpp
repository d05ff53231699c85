// `--device cuda`: the program's own CUDA, and a stub of NCCL alone. Where there is no GPU, the
// virtual one's libraries stand in for NVIDIA's, put there as if by the user.

#include <filesystem>

#include "sim/cli/torch/preload.h"
#include "sim/virtual_gpu/spec.h"
#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ExecRealGpu : public ExecProgram {
 protected:
  static std::filesystem::path virtual_gpu_folder() {
    return std::filesystem::path(tests::kProgram).parent_path() / "virtual_gpu";
  }

  void have_driver() { environment_["ONERANK_DRIVER_FILE"] = "/dev/null"; }

  /// A machine with one small device; NCCL's library is the only one that is not there.
  void have_gpu() {
    have_driver();
    environment_["TORCHINDUCTOR_CACHE_DIR"] = path("inductor");  // the user's own caches are used
    const Preload all(virtual_gpu_folder());
    std::istringstream names(all.value());
    std::string libraries;
    for (std::string name; std::getline(names, name, ':');) {
      if (name.find("libnccl") == name.npos) libraries += (libraries.empty() ? "" : ":") + name;
    }
    environment_["LD_PRELOAD"] = libraries;
    environment_["ONERANK_VIRTUAL_GPU"] = virtual_gpu::to_environment({.name = kGpuName,
                                                                       .capability_major = 9,
                                                                       .capability_minor = 0,
                                                                       .multiprocessors = 132,
                                                                       .memory_bytes = kMemoryBytes,
                                                                       .l2_bytes = 50 << 20,
                                                                       .device_count = 1});
  }

  static constexpr const char* kGpuName = "NVIDIA H100 80GB HBM3";
  static constexpr int64_t kMemoryBytes = int64_t{8} << 30;
};

TEST_F(ExecRealGpu, ThatIsNotThereIsAnError) {
  environment_["ONERANK_DRIVER_FILE"] = path("no-driver");
  const ProgramResult result = run({"exec", "--device", "cuda", "--", "true"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.error,
            "error: there is no GPU to run the program on\n"
            "  --device cuda: no driver of NVIDIA's is loaded here\n"
            "  help: use --device virtual, or run it on a machine with a GPU\n");
}

TEST_F(ExecRealGpu, RefusesWhatOnlyAVirtualOneCanBe) {
  have_driver();
  const std::vector<std::vector<std::string>> all_flags = {{"--gpu", "h100-sxm"},
                                                           {"--events", "ordered"},
                                                           {"--no-memory-limit"},
                                                           {"--accept-invented-counts"},
                                                           {"--assume", "loss=1"},
                                                           {"--expert-balance", "balanced"}};
  for (const auto& flags : all_flags) {
    std::vector<std::string> words = {"exec", "--device", "cuda"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--", "true"});
    const ProgramResult result = run(words);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.error, HasSubstr(flags[0] + " with --device cuda"));
  }
}

TEST_F(ExecRealGpu, OfNoKindIsRefused) {
  EXPECT_THAT(run({"exec", "--device", "cpu", "--", "true"}).error, HasSubstr("--device cpu"));
  EXPECT_THAT(run({"exec", "--device", "cude", "--", "true"}).error,
              HasSubstr("did you mean cuda?"));
}

TEST_F(ExecRealGpu, GetsNothingOfTheVirtualOne) {
  have_driver();
  const ProgramResult result =
      run({"exec", "--device", "cuda", "--world-size", "64", "--rank", "11", "--", "env"});
  EXPECT_EQ(result.exit_code, 3) << "env uses no GPU";
  EXPECT_THAT(result.output, HasSubstr("\nRANK=11\n"));
  EXPECT_THAT(result.output, HasSubstr("\nLOCAL_RANK=0\n"));
  EXPECT_THAT(result.output, HasSubstr("/libnccl.so.2"));
  EXPECT_THAT(result.output,
              AllOf(Not(HasSubstr("libcu")),
                    Not(HasSubstr("ONERANK_VIRTUAL_GPU=")),
                    Not(HasSubstr("TRITON")),
                    Not(HasSubstr("USE_PYTORCH_KERNEL_CACHE"))));
}

TEST_F(ExecRealGpu, HasTheStubOfNcclLoadedAndNoRuntimeWithIt) {
  have_driver();
  const ProgramResult result = run({"exec", "--device", "cuda", "--", "cat", "/proc/self/maps"});
  EXPECT_THAT(result.output, HasSubstr("virtual_gpu/lib/libnccl.so.2"));
  EXPECT_THAT(result.output, Not(HasSubstr("libcu")));
}

TEST_F(ExecRealGpu, RunsAShardedModelWithAStubOfNcclAlone) {
  have_gpu();
  const ProgramResult result = run_program("fsdp2.py",
                                           {"--device",
                                            "cuda",
                                            "--world-size",
                                            "64",
                                            "--rank",
                                            "9",
                                            "--peak-snapshot",
                                            path("p.jsonl")});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const estimator::RankProfile measured = profile(9);
  EXPECT_EQ(measured.device.kind, estimator::DeviceKind::kCuda);
  EXPECT_EQ(measured.device.name, kGpuName);
  EXPECT_EQ(measured.device.total_bytes, kMemoryBytes);
  EXPECT_EQ(measured.program->events, "");
  EXPECT_THAT(measured.program->kernels, IsEmpty()) << "they are the real driver's";
  EXPECT_THAT(measured.program->invented_reads, IsEmpty());
  EXPECT_FALSE(measured.program->communicators.empty());

  // On the virtual GPU the allocator does the same.
  environment_.erase("LD_PRELOAD");
  environment_.erase("ONERANK_VIRTUAL_GPU");
  ASSERT_EQ(run_program("fsdp2.py", {"--world-size", "64", "--rank", "9"}).exit_code, 0);
  EXPECT_EQ(measured.peak.allocated_bytes, profile(9).peak.allocated_bytes);
  EXPECT_EQ(measured.peak.reserved_bytes, profile(9).peak.reserved_bytes);
}

TEST_F(ExecRealGpu, ThatIsTooSmallSaysSo) {
  have_gpu();
  EXPECT_EQ(run_program("too_large.py", {"--device", "cuda"}).exit_code, 1);
  EXPECT_EQ(profile(0).out_of_memory->requested_bytes, int64_t{1} << 30);
}

}  // namespace
}  // namespace sim
