#include "estimator/compute/calibration.h"

#include <gtest/gtest.h>

#include "estimator/compute/compute_time.h"
#include "estimator/compute/gpu_rates.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

/// As an H100 would leave it, with round numbers.
Calibration calibration_of_h100() {
  Calibration calibration;
  calibration.device.kind = DeviceKind::kCuda;
  calibration.device.gpu = "h100-sxm";
  calibration.device.name = "NVIDIA H100 80GB HBM3";
  calibration.driver = "580.1";
  calibration.date = "2026-11-21";
  calibration.matmul = {{.dtype = Dtype::kBf16, .m = 8192, .n = 8192, .k = 8192, .seconds = 2e-3},
                        {.dtype = Dtype::kBf16, .m = 512, .n = 512, .k = 512, .seconds = 1e-5}};
  calibration.attention = {{.pass = AttentionPass::kForward,
                            .batch = 1,
                            .heads = 32,
                            .sequence = 8192,
                            .head_width = 128,
                            .seconds = 2e-3}};
  calibration.streams = {{1'000'000, 1e-6}, {1'000'000'000, 4e-4}};
  calibration.optimizer = {{1'000'000'000, 5e-4}};
  calibration.launch = {.kernel_seconds = 2e-6, .host_seconds = 6e-6};
  return calibration;
}

Calibration read(const Json& json) { return read_calibration(json.dump(), "h100.json"); }

std::string complaint(const std::function<void(Json&)>& damage) {
  Json json = to_json(calibration_of_h100());
  damage(json);
  return complaint_of([&] { read(json); });
}

TEST(Calibration, ReadsBackWhatItWrote) {
  const Json json = to_json(calibration_of_h100());
  EXPECT_EQ(to_json(read(json)), json);
}

TEST(Calibration, RefusesOtherDocumentsAndVersions) {
  EXPECT_NE(complaint([](Json& j) { j["kind"] = "rank_profile"; }).find("calibration"),
            std::string::npos);
  EXPECT_NE(complaint([](Json& j) { j["schema_version"] = 2; }).find("this tool reads 1"),
            std::string::npos);
  EXPECT_NE(complaint([](Json& j) { j["matmuls"] = 1; }).find("unknown key"), std::string::npos);
}

TEST(Calibration, RefusesWhatNoMeasurementGives) {
  EXPECT_NE(complaint([](Json& j) { j["matmul"][1]["seconds"] = 0; }).find("matmul[1].seconds"),
            std::string::npos);
  EXPECT_NE(complaint([](Json& j) { j["streams"][0]["bytes"] = -1; }).find("streams[0]"),
            std::string::npos);
  EXPECT_NE(
      complaint([](Json& j) { j.erase("launch"); }).find("a key is missing\n  h100.json: launch"),
      std::string::npos);
  for (const double seconds : {5e-324, 1e308}) {
    EXPECT_NE(complaint([&](Json& j) {
                j["launch"]["host_seconds"] = seconds;
              }).find("launch.host_seconds"),
              std::string::npos);
  }
}

TEST(Calibration, IsNoFasterThanItsGpu) {
  const auto complaint_about_row = [](const std::function<void(Calibration&)>& change) {
    Calibration calibration = calibration_of_h100();
    change(calibration);
    return complaint_of(
        [&] { check_calibration_is_of(calibration, *find_gpu("h100-sxm"), "h100.json"); });
  };
  EXPECT_EQ(complaint_about_row([](Calibration&) {}), "");
  EXPECT_NE(complaint_about_row([](Calibration& c) {
              c.matmul[1].seconds = 1e-9;
            }).find("h100.json: matmul[1] says 2.684e+17 a second"),
            std::string::npos);
  EXPECT_NE(complaint_about_row([](Calibration& c) {
              c.attention[0].seconds = 1e-6;
            }).find("attention[0]"),
            std::string::npos);
  EXPECT_NE(complaint_about_row([](Calibration& c) {
              c.optimizer[0].seconds = 1e-6;
            }).find("optimizer[0]"),
            std::string::npos);
}

TEST(Calibration, HasItsCopiesInTheOrderOfTheirSizes) {
  Calibration calibration = calibration_of_h100();
  std::swap(calibration.streams[0], calibration.streams[1]);
  EXPECT_EQ(read(to_json(calibration)).streams[0].bytes, 1'000'000);
}

TEST(Calibration, IsForTheGpuThatItMeasured) {
  Calibration calibration = calibration_of_h100();
  EXPECT_NO_THROW(check_calibration_is_of(calibration, *find_gpu("h100-sxm"), "f"));
  EXPECT_NE(complaint_of([&] {
              check_calibration_is_of(calibration, *find_gpu("b200-sxm"), "f");
            }).find("another GPU"),
            std::string::npos);
  calibration.device.kind = DeviceKind::kCpu;
  EXPECT_NE(complaint_of([&] {
              check_calibration_is_of(calibration, *find_gpu("h100-sxm"), "f");
            }).find("not measured on a real GPU"),
            std::string::npos);
}

TEST(GpuRates, AreTheMeasuredOnesAtMeasuredShapes) {
  const Calibration calibration = calibration_of_h100();
  const GpuRates rates(*find_gpu("h100-sxm"), &calibration);
  const MatmulShape large{.m = 8192, .n = 8192, .k = 8192}, small{.m = 512, .n = 512, .k = 512};
  EXPECT_NEAR(rates.matmul_flops_per_second(large, Dtype::kBf16, false), large.flops() / 2e-3, 1e6);
  EXPECT_NEAR(rates.matmul_flops_per_second(small, Dtype::kBf16, false), small.flops() / 1e-5, 1e6);
  // 4 x 32 x 8192^2 x 128 / 2 FLOPs in 2 ms.
  const AttentionShape attention{.heads = 32, .sequence = 8192};
  EXPECT_NEAR(rates.attention_flops_per_second(attention), 549755813888.0 / 2e-3, 1e6);
  EXPECT_NEAR(rates.memory_bytes_per_second(1e9), 2.5e12, 1);
  EXPECT_NEAR(rates.memory_bytes_per_second(1e9, true), 2e12, 1);
  EXPECT_DOUBLE_EQ(rates.launch().kernel_seconds, 2e-6);
}

TEST(GpuRates, OfTheHostAreNoLessThanAMeasuredCallFromCpp) {
  Calibration calibration = calibration_of_h100();
  const Gpu& h100 = *find_gpu("h100-sxm");
  const LaunchCost assumed = assumed_launch_cost(h100);  // 16.9 us
  const auto launch = [&] { return GpuRates(h100, &calibration).launch(); };
  EXPECT_DOUBLE_EQ(launch().host_call_seconds, assumed.host_call_seconds);
  calibration.launch.host_seconds = 30e-6;
  EXPECT_DOUBLE_EQ(launch().host_call_seconds, 30e-6);
}

TEST(GpuRates, OfATypeThatWasNotMeasuredAreThePublishedOnes) {
  const Calibration calibration = calibration_of_h100();
  const Gpu& h100 = *find_gpu("h100-sxm");
  const GpuRates measured(h100, &calibration), published(h100, nullptr);
  const MatmulShape shape{.m = 4096, .n = 4096, .k = 4096};
  EXPECT_EQ(measured.matmul_flops_per_second(shape, Dtype::kFp16, false),
            published.matmul_flops_per_second(shape, Dtype::kFp16, false));
  EXPECT_NE(measured.matmul_flops_per_second(shape, Dtype::kBf16, false),
            published.matmul_flops_per_second(shape, Dtype::kBf16, false));
}

std::vector<Source> sources(const char* gpu, const Calibration* calibration) {
  std::vector<Source> result;
  for (const RateTerm& term : GpuRates(*find_gpu(gpu), calibration).terms(Dtype::kBf16, true)) {
    result.push_back(term.source);
  }
  return result;
}

TEST(GpuRates, SayWhereEachNumberComesFrom) {
  const auto published = Source::kPublished, assumed = Source::kAssumed;
  EXPECT_EQ(sources("h100-sxm", nullptr),
            (std::vector{published, published, published, published, assumed, assumed, assumed}));
  EXPECT_EQ(sources("l40s", nullptr), std::vector(7, assumed));
  const Calibration calibration = calibration_of_h100();
  std::vector<Source> expected(5, Source::kMeasured);
  expected.insert(expected.end(), 2, assumed);  // what a framework takes of the host
  EXPECT_EQ(sources("h100-sxm", &calibration), expected);
}

}  // namespace
}  // namespace estimator
