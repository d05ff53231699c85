#include "estimator/communication/measured_collectives.h"

#include <gtest/gtest.h>

#include <cmath>

#include "estimator/base/units.h"
#include "estimator/communication/communication_time.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

// As nccl-tests @a0b82b2 prints it (src/util.cu).
std::string text_of(const std::string& rows,
                    const std::string& second_device = "NVIDIA H100 80GB HBM3") {
  return "# nccl-tests version 2.17.1 nccl-headers=22703 nccl-library=22703\n"
         "# Collective test starting: all_reduce_perf\n"
         "# nThread 1 nGpus 2 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 1 "
         "iters: "
         "20 agg iters: 1 validation: 1 graph: 0 unalign: 0\n"
         "#\n"
         "# Using devices\n"
         "#  Rank  0 Group  0 Pid   4711 on     node-1 device  0 [0000:0f:00] NVIDIA H100 80GB "
         "HBM3\n"
         "#  Rank  1 Group  0 Pid   4711 on     node-1 device  1 [0000:2d:00] " +
         second_device +
         "\n#\n"
         "#                                                              out-of-place              "
         "  "
         "       in-place          \n"
         "#       size         count      type   redop    root     time   algbw   busbw  #wrong    "
         " "
         "time   algbw   busbw  #wrong \n"
         "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
         " "
         "(us)  (GB/s)  (GB/s)         \n" +
         rows +
         "# Out of bounds values : 0 OK\n"
         "# Avg bus bandwidth    : 80.1 \n";
}
constexpr const char* kRows =
    "     1048576        262144     float     sum      -1    20.00   52.43   52.43       0    "
    "19.50  "
    " 53.77   53.77       0\n"
    "     4194304       1048576     float     sum      -1    80.00   52.43   52.43       0    "
    "79.50  "
    " 52.76   52.76     N/A\n";

TEST(NcclTestsText, IsReadWithItsGroup) {
  const MeasuredCollective measured = read_nccl_tests(text_of(kRows), "f");
  EXPECT_EQ(measured.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(measured.ranks, 2);
  EXPECT_EQ(measured.machines, 1);
  EXPECT_EQ(measured.device, "NVIDIA H100 80GB HBM3");
  ASSERT_EQ(measured.points.size(), 2U);
  EXPECT_EQ(measured.points[1].bytes, 4194304);
  EXPECT_DOUBLE_EQ(measured.points[1].seconds, 80e-6);
}

TEST(NcclTestsText, WithoutItsProgramNeedsToBeToldTheCollective) {
  std::string old = text_of(kRows);
  old.erase(old.find("# Collective"), old.find("# nThread") - old.find("# Collective"));
  EXPECT_NE(complaint_of([&] { read_nccl_tests(old, "f"); }).find("which collective"),
            std::string::npos);
  EXPECT_EQ(read_nccl_tests(old, "f", CollectiveKind::kAllGather).kind, CollectiveKind::kAllGather);
}

TEST(NcclTestsText, ThatIsDamagedIsRefusedWithItsLine) {
  const auto complaint = [](const std::string& text) {
    return complaint_of([&] { read_nccl_tests(text, "f"); });
  };
  EXPECT_NE(complaint(text_of("     1048576        262144     float\n")).find("f, line 12"),
            std::string::npos);
  EXPECT_NE(complaint(text_of("1048576 262144 float sum -1 2o.00 52 52 0\n")).find("\"2o.00\""),
            std::string::npos);
  EXPECT_NE(complaint(text_of("1048576 262144 float sum -1 20.00 52 52 7\n")).find("wrong results"),
            std::string::npos);
  EXPECT_NE(complaint(text_of(std::string(kRows) + kRows)).find("stand twice"), std::string::npos);
  for (const char* row : {"1048576 262144 float sum -1 1e308 52 52 0\n",
                          "1048576 262144 float sum -1 1e-320 52 52 0\n",
                          "9000000000000000 262144 float sum -1 20 52 52 0\n"}) {
    EXPECT_NE(complaint(text_of(row)).find("no measurement gives"), std::string::npos) << row;
  }
  EXPECT_NE(complaint(text_of("")).find("no line has a result"), std::string::npos);
  EXPECT_NE(complaint("").find("no line says which collective"), std::string::npos);
  EXPECT_NE(complaint(text_of(kRows, "NVIDIA A100-SXM4-80GB")).find("two kinds of GPUs"),
            std::string::npos);
}

constexpr const char* kJson = R"({"version": 1, "args": ["/opt/all_gather_perf_mpi", "-g", "1"],
  "config": {"devices": [
    {"rank": 0, "hostname": "a", "device": 0, "device_info": "NVIDIA H100 80GB HBM3"},
    {"rank": 1, "hostname": "b", "device": 0, "device_info": "NVIDIA H100 80GB HBM3"}]},
  "results": [{"size": 1024, "count": 256, "out_of_place":
      {"time": 12.5, "alg_bw": 0.1, "bus_bw": 0.05, "nwrong": 0}}]})";

TEST(NcclTestsJson, IsReadWithItsGroup) {
  const MeasuredCollective measured = read_nccl_tests(kJson, "f.json");
  EXPECT_EQ(measured.kind, CollectiveKind::kAllGather);
  EXPECT_EQ(measured.ranks, 2);
  EXPECT_EQ(measured.machines, 2);
  EXPECT_DOUBLE_EQ(measured.points.at(0).seconds, 12.5e-6);
}

TEST(NcclTestsJson, ThatLacksATimeIsRefusedWithItsPlace) {
  std::string broken = kJson;
  broken.replace(broken.find("\"time\""), 6, "\"tine\"");
  const std::string complaint = complaint_of([&] { read_nccl_tests(broken, "f.json"); });
  EXPECT_NE(complaint.find("f.json: results[0]"), std::string::npos) << complaint;
}

MeasuredCollective line() {
  return {.origin = "f",
          .kind = CollectiveKind::kAllReduce,
          .ranks = 8,
          .machines = 1,
          .device = "NVIDIA H100 80GB HBM3",
          .points = {{kMiB, 20e-6}, {4 * kMiB, 80e-6}}};
}

TEST(MeasuredCollective, IsInterpolatedInLogarithms) {
  EXPECT_NEAR(line().seconds(2 * kMiB), 40e-6, 1e-12);
  EXPECT_DOUBLE_EQ(line().seconds(8), 20e-6);              // no faster than the smallest
  EXPECT_DOUBLE_EQ(line().seconds(16 * kMiB), 4 * 80e-6);  // the largest one's bandwidth
}

TEST(MeasuredCollective, TakesTheModelsPlaceForItsOwnGroupOnly) {
  Fabric fabric = fabric_of(small_plan());
  const CollectiveCall call{.kind = CollectiveKind::kAllReduce, .dtype = "", .bytes = 2 * kMiB};
  const double modelled = collective_time(call, {8, 8}, fabric).seconds;
  fabric.measured = {line()};
  const CollectiveTime measured = collective_time(call, {8, 8}, fabric);
  EXPECT_EQ(measured.source, Source::kMeasured);
  EXPECT_EQ(measured.origin, "f");
  EXPECT_NEAR(measured.seconds, 40e-6, 1e-12);
  EXPECT_GT(std::abs(modelled / measured.seconds - 1), 0.01);
  EXPECT_EQ(collective_time(call, {4, 4}, fabric).source, Source::kComputed);
  EXPECT_EQ(collective_time(call, {8, 4, 4}, fabric).source, Source::kComputed);
  fabric.gpu_cuda_name = "NVIDIA H200";
  EXPECT_EQ(collective_time(call, {8, 8}, fabric).source, Source::kComputed);
}

// nccl-tests, doc/PERFORMANCE.md: all-reduce 2(n-1)/n, all-gather (n-1)/n, broadcast 1.
TEST(BusBandwidth, HasItsFactorByCollective) {
  EXPECT_DOUBLE_EQ(bus_bytes_per_second(CollectiveKind::kAllReduce, 8, 800, 1), 1400);
  EXPECT_DOUBLE_EQ(bus_bytes_per_second(CollectiveKind::kAllGather, 8, 800, 1), 700);
  EXPECT_DOUBLE_EQ(bus_bytes_per_second(CollectiveKind::kBroadcast, 8, 800, 1), 800);
}

/// Two ranks on two machines, as a file measured them alone.
CollectiveTime beside_others(const Json& cluster,
                             CollectiveKind kind = CollectiveKind::kAllReduce) {
  Json changes = {{"cluster", {{"nodes", 2}}}, {"training", {{"global_batch_size", 16}}}};
  changes["cluster"].merge_patch(cluster);
  Fabric fabric = fabric_of(small_plan(changes));
  MeasuredCollective alone = line();
  alone.kind = kind;
  alone.ranks = alone.machines = 2;
  fabric.measured = {alone};
  const int64_t per_pod = fabric.pod_gpus > 0 ? 1 : 2;
  return collective_time({.kind = kind, .dtype = "", .bytes = 2 * kMiB},
                         {.ranks = 2, .ranks_per_domain = 1, .ranks_per_pod = per_pod},
                         fabric);
}

TEST(MeasuredCollective, OfOneGroupIsAsSlowForSeveralAsSoManyMoreBytes) {
  const CollectiveTime alone = beside_others({{"nics_per_node", 8}});
  EXPECT_EQ(alone.source, Source::kMeasured);
  EXPECT_NEAR(alone.seconds, 40e-6, 1e-12);
  const CollectiveTime shared = beside_others({{"nics_per_node", 1}});
  EXPECT_EQ(shared.source, Source::kComputed);
  EXPECT_EQ(shared.origin, "f");
  EXPECT_NEAR(shared.seconds, 4 * 80e-6, 1e-12);  // 16 MiB
  const Json pods = {{"nics_per_node", 1}, {"nodes_per_pod", 1}, {"spine_oversubscription", 8}};
  EXPECT_NEAR(beside_others(pods).seconds, 32 * 80e-6, 1e-12);  // 128 MiB
  EXPECT_NEAR(beside_others(pods, CollectiveKind::kAllToAll).seconds, 32 * 80e-6, 1e-12);
}

}  // namespace
}  // namespace estimator
