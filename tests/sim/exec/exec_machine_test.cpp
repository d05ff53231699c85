// What a program finds on the virtual machine beside the devices: NVIDIA's management library, a
// way to meet, attention, Triton.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

class ExecMachine : public ExecProgram {};

TEST_F(ExecMachine, TellsOfItsDevicesThroughNvml) {
  if (!has_package("pynvml.py")) GTEST_SKIP() << "no pynvml: scripts/test installs it";
  const ProgramResult result = run_program("management.py", {"--gpus-per-node", "4"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("name NVIDIA H100 80GB HBM3"));
  EXPECT_THAT(result.output, HasSubstr("devices 4 4"));
  EXPECT_EQ(printed(result.output, "total"), profile(0).device.total_bytes);
  EXPECT_EQ(printed(result.output, "used"), (int64_t{1} << 30) + profile(0).program->outside_bytes);
  EXPECT_THAT(result.output, HasSubstr("peers True"));
  EXPECT_EQ(printed(result.output, "clock"), 1980);
  EXPECT_EQ(printed(result.output, "links"), 18);
  EXPECT_EQ(printed(result.output, "limit"), 700'000);
}

// modded-nanogpt prints what it says.
TEST_F(ExecMachine, HasAnNvidiaSmiThatTellsOfThem) {
  const auto asked = [this](const std::string& line) {
    return run({"exec", "--gpus-per-node", "2", "--memory", "50", "--", "bash", "-c", line});
  };
  EXPECT_THAT(asked("nvidia-smi").output, HasSubstr("CUDA Version: 13.0"));
  EXPECT_THAT(asked("nvidia-smi -L").output, HasSubstr("GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-"));
  EXPECT_THAT(asked("nvidia-smi -i 1 --query-gpu=index,name,memory.total --format=csv").output,
              HasSubstr("index, name, memory.total [MiB]\n1, NVIDIA H100 80GB HBM3, 51200 MiB\n"));
  EXPECT_THAT(asked("nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits").output,
              HasSubstr("51200\n51200\n"));
  EXPECT_THAT(asked("nvidia-smi topo -m").error,
              HasSubstr("nvidia-smi: topo: Onerank plays the GPU, and its nvidia-smi knows -L"));
}

// The context of an H100, and two cuBLAS workspaces: the estimator's terms, which the verdict has.
TEST_F(ExecMachine, HasTheContextInItsMemoryFromTheStart) {
  const ProgramResult result = run_program("free_memory.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const int64_t outside_bytes = profile(0).program->outside_bytes;
  EXPECT_GT(outside_bytes, int64_t{512} << 20);
  EXPECT_EQ(printed(result.output, "total") - printed(result.output, "free"), outside_bytes);
}

TEST_F(ExecMachine, LetsRanksMeetByAFile) {
  for (const char* rank : {"0", "27"}) {
    const ProgramResult result =
        run_program("file_store.py", {"--world-size", "64", "--rank", rank});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.output, HasSubstr("met"));
  }
}

TEST_F(ExecMachine, TakesCudnnsAttentionWhereTheProgramAsksForIt) {
  const ProgramResult result = run_program("attention.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(profile(0).program->attention,
              ElementsAre("aten::_scaled_dot_product_cudnn_attention",
                          "aten::_scaled_dot_product_cudnn_attention_backward"));
  const auto works = profile(0).trace->works;
  EXPECT_THAT(works,
              Contains(Field(&estimator::TraceWork::name,
                             HasSubstr("cudnn_generated_fort_native_sdpa_flash_bprop"))));
  // Two products of 128 queries with 128 keys, four heads of width 64, half of them masked.
  EXPECT_THAT(works, Contains(Field(&estimator::TraceWork::flops, 2.0 * 4 * 128 * 128 * 64)));
}

TEST_F(ExecMachine, KnowsAttentionWithATensorAsMaskAndWithDropout) {
  const ProgramResult result = run_program("attention_extras.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  using Extras = std::pair<bool, bool>;  // mask, dropout
  std::map<std::string, std::vector<Extras>> found;
  const std::vector<estimator::TraceWork> works = profile(0).trace->works;
  for (const estimator::TraceWork& work : works) {
    const std::string& name = work.operator_name;
    if (work.flops == 0 || name.find("cudnn_attention") == name.npos) continue;
    found[name].emplace_back(work.has_mask, work.has_dropout);
  }
  const auto each =
      testing::UnorderedElementsAre(Extras(false, false), Extras(true, false), Extras(false, true));
  EXPECT_THAT(found["aten::_scaled_dot_product_cudnn_attention"], each);
  EXPECT_THAT(found["aten::_scaled_dot_product_cudnn_attention_backward"], each);
}

TEST_F(ExecMachine, NamesAttentionOfFlashAttn) {
  const ProgramResult result = run_program("flash_attn.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(profile(0).program->attention, ElementsAre("flash_attn::_flash_attn_forward"));
}

TEST_F(ExecMachine, RunsCudnnsConvolutionsNormsAndRecurrentLayers) {
  const ProgramResult result = run_program("convolutions.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("enabled True sequence [4, 1024, 4]"));
  EXPECT_THAT(result.output, HasSubstr("padded [4, 20, 32] lengths [20, 5, 12, 7]"));
  EXPECT_EQ(profile(0).program->optimizer_steps, 2);
  // 4 images of 32 x 32, 8 channels out, 3 channels under 9 places of the filter.
  EXPECT_THAT(profile(0).trace->works,
              Contains(Field(&estimator::TraceWork::shapes,
                             ElementsAre(ElementsAre(1, 4 * 32 * 32, 8, 3 * 9),
                                         ElementsAre(3, 8, 9, 4 * 3 * 32 * 32, 4 * 8 * 32 * 32)))));
}

TEST_F(ExecMachine, TransformsByFourier) {
  const ProgramResult result = run_program("fourier.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("spectrogram [2, 201, 101] modes [4, 8, 64, 33]"));
  EXPECT_THAT(profile(0).program->kernels,
              Contains(Field(&estimator::KernelRecord::name, "vector_fft")));
}

TEST_F(ExecMachine, FollowsTheCountsOfSyncBatchNormThroughAllRanks) {
  const ProgramResult result =
      run_program("sync_batch_norm.py", {"--world-size", "16", "--rank", "9"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(profile(9).program->optimizer_steps, 2);
}

// Four launches of a graph, three warm-ups: two linear layers have two products forward and three
// backward, since nobody asks for the gradient of the input.
TEST_F(ExecMachine, CountsAGraphAtEveryLaunch) {
  const ProgramResult result = run_program("cuda_graph.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(printed(result.output, "grew"), 0);
  const auto gemms = profile(0).program->gemms;
  int64_t products = 0;
  for (const auto& gemm : gemms) products += gemm.count;
  EXPECT_EQ(products, (3 + 4) * 5);
  EXPECT_EQ(profile(0).program->optimizer_steps, 4);
  const auto trace = *profile(0).trace;
  int64_t of_iteration = 0;
  for (size_t i = 0; i < trace.events.item.size(); ++i) {
    if (trace.events.kind[i] != 0) continue;
    const auto& work = trace.works[static_cast<size_t>(trace.events.item[i])];
    of_iteration += work.kind == estimator::WorkKind::kProduct;
  }
  EXPECT_EQ(of_iteration, 5);
}

/// The step that is captured is none, but each replay has one.
TEST_F(ExecMachine, TakesEachReplayOfAWholeIterationForOne) {
  const ProgramResult result = run_program("cuda_graph.py", {}, {"whole"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const auto told = profile(0);
  EXPECT_EQ(told.program->optimizer_steps, 3 + 4);
  EXPECT_EQ(told.program->recorded_iteration, 4) << "the first whole one that launches the graph";
  EXPECT_THAT(told.program->recorded_with, testing::IsEmpty());
  EXPECT_EQ(told.trace->iteration, 4);
  const ProgramResult early = run_program("cuda_graph.py", {"--steps", "4"}, {"whole"});
  EXPECT_EQ(profile(0).program->recorded_iteration, 1);
  EXPECT_THAT(early.output, HasSubstr("no iteration that launches one was recorded whole"));
}

// 15 of 64 tokens in each of two sequences, times the width.
TEST_F(ExecMachine, CountsAnExpandedMaskWhoseFewElementsTheHostKnows) {
  const ProgramResult result = run_program("expanded_mask.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(printed(result.output, "elements"), 2 * 15 * 4096);
}

TEST_F(ExecMachine, CountsTheLaunchesOfTritonKernels) {
  if (!has_package("triton")) GTEST_SKIP() << "no triton: scripts/test installs it";
  const ProgramResult result = run_program("triton_kernel.py", {});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const auto kernels = profile(0).program->kernels;
  EXPECT_THAT(kernels,
              Contains(testing::AllOf(Field(&estimator::KernelRecord::name, "double"),
                                      Field(&estimator::KernelRecord::launches, 3))));
  EXPECT_THAT(kernels,
              Contains(Field(&estimator::KernelRecord::name, HasSubstr("triton_poi_fused"))));
  // As many launches for each of two configurations as fit into 125 ms, each beside the clearing of
  // a cache of 256 MiB (0.08 ms at 3.35 TB/s).
  EXPECT_THAT(
      kernels,
      Contains(testing::AllOf(Field(&estimator::KernelRecord::name, "tuned"),
                              Field(&estimator::KernelRecord::launches, testing::Lt(3200)))));
  EXPECT_THAT(result.output, HasSubstr("by these it chose, of 2 ways for tuned: block: 128"));
}

}  // namespace
}  // namespace sim
