#include "estimator/hardware/hardware.h"

#include <gtest/gtest.h>

#include <set>

#include "estimator/base/errors.h"
#include "estimator/base/units.h"

namespace estimator {
namespace {

TEST(Gpus, HavePositiveNumbersAndSources) {
  EXPECT_GE(gpus().size(), 20u);
  for (const Gpu& gpu : gpus()) {
    EXPECT_GT(gpu.multiprocessors, 0) << gpu.id;
    EXPECT_GT(gpu.memory_bytes, 8 * kGiB) << gpu.id;
    EXPECT_GT(gpu.memory_bandwidth_bytes_per_second, 1e11) << gpu.id;
    EXPECT_GE(gpu.l2_bytes, 4 * kMiB) << gpu.id;
    EXPECT_FALSE(gpu.l2_source.empty()) << gpu.id;
    EXPECT_GT(gpu.context_bytes, 100 * kMiB) << gpu.id;
    EXPECT_LT(gpu.context_bytes, 2 * kGiB) << gpu.id;
    EXPECT_GE(gpu.nvlink_domain_gpus, 1) << gpu.id;
    EXPECT_TRUE(gpu.supports(Dtype::kFp32)) << gpu.id;
    EXPECT_TRUE(gpu.supports(Dtype::kFp16)) << gpu.id;
    EXPECT_GT(gpu.peak_flops(Dtype::kFp16), 1e13) << gpu.id;
    EXPECT_FALSE(gpu.sources.empty()) << gpu.id;
    EXPECT_FALSE(gpu.context_source.empty()) << gpu.id;
    EXPECT_FALSE(gpu.cuda_name.empty()) << gpu.id;
  }
}

TEST(Gpus, UseLinksThatExist) {
  for (const Gpu& gpu : gpus()) {
    EXPECT_NE(find_link(gpu.default_intra_link), nullptr)
        << gpu.id << ": " << gpu.default_intra_link;
    EXPECT_NE(find_link(gpu.default_inter_link), nullptr)
        << gpu.id << ": " << gpu.default_inter_link;
  }
}

TEST(Gpus, OfAnNvlinkDomainHaveNvlink) {
  for (const Gpu& gpu : gpus()) {
    if (gpu.nvlink_domain_gpus == 1) continue;
    EXPECT_EQ(find_link(gpu.default_intra_link)->kind, "nvlink") << gpu.id;
  }
}

TEST(Gpus, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const std::string& name : gpu_names()) EXPECT_TRUE(names.insert(name).second) << name;
}

TEST(Gpus, PricesArePositiveAndSayWhereTheyAreFrom) {
  for (const Gpu& gpu : gpus()) {
    for (const GpuPrice& price : gpu.prices) {
      EXPECT_GT(price.usd_per_gpu_hour, 0) << gpu.id;
      EXPECT_FALSE(price.source.empty()) << gpu.id;
    }
  }
}

TEST(Gpus, AreFoundAsPeopleWriteThem) {
  for (const auto& [name, id] : {std::pair{"RTX 4090", "rtx4090"},
                                 std::pair{"4090", "rtx4090"},
                                 std::pair{"GeForce RTX 3090", "rtx3090"},
                                 std::pair{"A100-80G", "a100-sxm-80"},
                                 std::pair{"A800", "a800-sxm"},
                                 std::pair{"RTX A6000", "rtx-a6000"},
                                 std::pair{"RTX 6000 Ada", "rtx6000-ada"},
                                 std::pair{"RTX PRO 6000", "rtxpro6000-bw"},
                                 std::pair{"H100-94GB", "h100-nvl"},
                                 std::pair{"NVIDIA H20-3e", "h20-3e"},
                                 std::pair{"GB200-NVL72", "gb200"},
                                 std::pair{"gb300nvl72", "gb300"},
                                 std::pair{"VR NVL72", "vr200"},
                                 std::pair{"Vera Rubin NVL72", "vr200"},
                                 std::pair{"vr200-nvl144", "vr200"}}) {
    ASSERT_NE(find_gpu(name), nullptr) << name;
    EXPECT_EQ(find_gpu(name)->id, id) << name;
  }
  EXPECT_EQ(find_gpu("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), nullptr);
}

// NVIDIA A800 data sheet: 400 GB/s of NVLink in both directions, where the A100 has 600 GB/s.
TEST(Links, OfTheA800AreTwoThirdsOfTheA100s) {
  ASSERT_NE(find_link("nvlink3-a800"), nullptr);
  EXPECT_NEAR(find_link("nvlink3-a800")->nominal_bytes_per_second * 3,
              find_link("nvlink3")->nominal_bytes_per_second * 2,
              1);
  EXPECT_EQ(find_gpu("NVIDIA A800-SXM4-80GB")->default_intra_link, "nvlink3-a800");
}

// NVIDIA H100 data sheet: 989 TFLOPS bf16 dense, 3.35 TB/s; 80 GB of which CUDA reports 79.19 GiB.
TEST(Gpus, H100IsTheDataSheets) {
  for (const char* name : {"NVIDIA H100 80GB HBM3",
                           "H100 80GB HBM3",
                           "H100 SXM",
                           "nvidia h100",
                           "h100-sxm5-80gb",
                           "h100-80g",
                           "dgx-h100",
                           "HGX H100",
                           "H100 SXM5"}) {
    ASSERT_NE(find_gpu(name), nullptr) << name;
    EXPECT_EQ(find_gpu(name)->id, "h100-sxm") << name;
  }
  const Gpu* gpu = find_gpu("H100-SXM");
  ASSERT_NE(gpu, nullptr);
  EXPECT_NEAR(gpu->peak_flops(Dtype::kBf16), 989e12, 1e12);
  EXPECT_NEAR(gpu->memory_bandwidth_bytes_per_second, 3.35e12, 0.01e12);
  EXPECT_EQ(gpu->multiprocessors, 132);
  EXPECT_EQ(gpu->l2_bytes, 50 * kMiB);
  EXPECT_EQ(format_gib(gpu->memory_bytes), "79.19 GiB");
}

TEST(Gpus, WithoutBf16SaySo) {
  EXPECT_FALSE(find_gpu("v100")->supports(Dtype::kBf16));
  EXPECT_THROW(find_gpu("v100")->peak_flops(Dtype::kBf16), UserError);
}

TEST(Links, AchieveNoMoreThanTheyPromise) {
  EXPECT_GE(links().size(), 15u);
  for (const Link& link : links()) {
    EXPECT_GT(link.achieved_bytes_per_second, 1e9) << link.id;
    EXPECT_LE(link.achieved_bytes_per_second, link.nominal_bytes_per_second) << link.id;
    EXPECT_GT(link.latency_seconds, 1e-7) << link.id;
    EXPECT_LT(link.latency_seconds, 1e-3) << link.id;
    EXPECT_FALSE(link.sources.empty()) << link.id;
  }
}

TEST(Links, AreOfAKnownKind) {
  const std::set<std::string> kinds = {"nvlink", "pcie", "ib", "opa", "roce", "efa", "sockets"};
  for (const Link& link : links())
    EXPECT_TRUE(kinds.contains(link.kind)) << link.id << ": " << link.kind;
}

TEST(Links, AreFoundInAnyCase) {
  EXPECT_NE(find_link("NVLink4"), nullptr);
  EXPECT_EQ(find_link("nvlink9"), nullptr);
}

TEST(Gpus, AreFoundByTheNameThatCudaReports) {
  for (const Gpu& gpu : gpus()) {
    const Gpu* found = find_gpu(gpu.cuda_name);
    ASSERT_NE(found, nullptr) << gpu.cuda_name;
    EXPECT_EQ(found->cuda_name, gpu.cuda_name);
  }
}

TEST(GpuHelp, AsksForOneThatIsMissingAndNamesWhatIsNotPlayed) {
  EXPECT_EQ(gpu_help(""), "give --gpu h100, see `onerank list gpus`");
  EXPECT_EQ(gpu_help("h101"), "did you mean h100?");
  EXPECT_EQ(gpu_help("xyzzy"), "see `onerank list gpus`");
  EXPECT_NE(gpu_help("MI300X").find("AMD's GPUs are not played"), std::string::npos);
}

}  // namespace
}  // namespace estimator
