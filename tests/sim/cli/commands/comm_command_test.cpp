#include <fmt/format.h>
#include <gmock/gmock.h>

#include "estimator/base/fields.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using estimator::Json;
using testing::HasSubstr;

class CommCommand : public OnerankProgram {
 protected:
  /// A file as nccl-tests writes it, of 8 GPUs: 1 MiB in 30 us, 2 MiB in 50 us.
  std::string measured_file(const std::string& last_row = kLastRow) {
    std::string text = "# Collective test starting: all_reduce_perf\n";
    for (int rank = 0; rank < 8; ++rank) {
      text += fmt::format(
          "#  Rank  {0} Group  0 Pid 7 on node device {0} [0000:0f:00] NVIDIA H100 80GB HBM3\n",
          rank);
    }
    text += "1048576 262144 float sum -1 30.0 34.95 61.2 0 30.0 34.95 61.2 0\n" + last_row;
    return write("nccl_tests.txt", text);
  }
  static constexpr const char* kLastRow =
      "2097152 524288 float sum -1 50.0 41.9 73.4 0 50.0 41.9 73.4 0\n";
};

// NCCL's own switch from a ring with LL to NVLS (nccl_model_test.cpp).
TEST_F(CommCommand, SaysWhatNcclChoosesBySize) {
  const ProgramResult result =
      run({"comm", "all_reduce", "--gpu", "h100", "-b", "1M", "-e", "2M", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Json report = Json::parse(result.output);
  EXPECT_EQ(report["ranks"], 8);
  EXPECT_EQ(report["points"][0]["algorithm"], "ring");
  EXPECT_EQ(report["points"][0]["protocol"], "ll");
  EXPECT_EQ(report["points"][1]["algorithm"], "nvls");
  EXPECT_EQ(report["points"][1]["source"], "computed");
  const double seconds = report["points"][1]["seconds"];
  EXPECT_NEAR(report["points"][1]["bus_bytes_per_second"], 2097152 * 1.75 / seconds, 1);
  EXPECT_THAT(report["assumptions"].dump(), HasSubstr("collectives over nvlink4 take"));
}

TEST_F(CommCommand, WritesItsTableInEachFormat) {
  const auto written = [&](const char* format) {
    return run({"comm", "all_reduce", "--gpu", "h100", "-b", "1M", "-e", "1M", "--format", format})
        .output;
  };
  EXPECT_THAT(written("table"), HasSubstr("assumed: "));
  EXPECT_THAT(written("md"), HasSubstr("| size (B) | algorithm | protocol |"));
  EXPECT_THAT(written("csv"), HasSubstr("\nsize (B),algorithm,protocol,"));
  EXPECT_THAT(written("csv"), HasSubstr("\n1048576,ring,ll,"));
  EXPECT_EQ(Json::parse(written("json"))["points"].size(), 1u);
}

// 2^30 x 2^34 is 2^64, which is 0 in 64 bits.
TEST_F(CommCommand, EndsAtTheLargestSizeWhateverTheStep) {
  for (const char* factor : {"17179869184", "9000000000000000", "8"}) {
    const ProgramResult result = run(
        {"comm", "all_reduce", "--gpu", "h100", "-b", "1G", "-e", "8G", "-f", factor, "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const std::size_t points = Json::parse(result.output)["points"].size();
    EXPECT_EQ(points, factor == std::string("8") ? 2u : 1u) << factor;
  }
}

// As NCCL_NVLS_ENABLE=0 and NCCL_ALGO do.
TEST_F(CommCommand, LeavesNcclNoChoiceWhereItIsTold) {
  const auto algorithm_at_1g = [&](const std::vector<std::string>& more) -> std::string {
    std::vector<std::string> arguments = {
        "comm", "all_reduce", "--gpu", "h100", "-b", "1G", "-e", "1G", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return Json::parse(result.output)["points"][0]["algorithm"];
  };
  EXPECT_EQ(algorithm_at_1g({}), "nvls");
  EXPECT_EQ(algorithm_at_1g({"--no-nvls"}), "ring");
  EXPECT_EQ(algorithm_at_1g({"--algorithm", "tree"}), "tree");
}

TEST_F(CommCommand, ComparesWithAMeasuredFileAtItsSizes) {
  const ProgramResult result =
      run({"comm", "all_reduce", "--gpu", "h100", "--measured", measured_file(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Json points = Json::parse(result.output)["points"];
  ASSERT_EQ(points.size(), 2U);
  EXPECT_DOUBLE_EQ(points[1]["measured_seconds"], 50e-6);
  const double seconds = points[1]["seconds"];
  EXPECT_NEAR(points[1]["error"], seconds / 50e-6 - 1, 1e-12);
}

TEST_F(CommCommand, UsesAMeasuredFileInPlaceOfTheModel) {
  const ProgramResult result = run({"comm",
                                    "all_reduce",
                                    "--gpu",
                                    "h100",
                                    "-b",
                                    "2M",
                                    "-e",
                                    "2M",
                                    "--nccl-tests",
                                    measured_file(),
                                    "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Json point = Json::parse(result.output)["points"][0];
  EXPECT_DOUBLE_EQ(point["seconds"], 50e-6);
  EXPECT_EQ(point["source"], "measured");
}

TEST_F(CommCommand, RefusesWhatItCannotAnswer) {
  const auto complaint = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "comm");
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2);
    return result.error;
  };
  EXPECT_THAT(complaint({"all_redce", "--gpu", "h100"}), HasSubstr("did you mean all_reduce?"));
  EXPECT_THAT(complaint({"all_reduce"}), HasSubstr("names no GPU"));
  EXPECT_THAT(complaint({"all_reduce", "--gpu", "h100", "-b", "8Q"}), HasSubstr("-b"));
  EXPECT_THAT(complaint({"all_reduce", "--gpu", "h100", "-b", "8G", "-e", "8"}),
              HasSubstr("no size"));
  EXPECT_THAT(complaint({"all_reduce", "--gpu", "h100", "--ranks-per-node", "9"}),
              HasSubstr("use a number from 1 to 8"));
  EXPECT_THAT(complaint({"all_reduce", "--gpu", "h100", "--algorithm", "rings"}),
              HasSubstr("did you mean ring?"));
  EXPECT_THAT(complaint({"broadcast", "--gpu", "h100", "--algorithm", "nvls"}),
              HasSubstr("NCCL cannot run broadcast so"));
  EXPECT_THAT(complaint({"all_to_all", "--gpu", "h100", "--algorithm", "ring"}),
              HasSubstr("NCCL cannot run all_to_all so"));
  for (const char* version : {"2.26.2x", "2", "2.", "3.1.0", "new"}) {
    EXPECT_THAT(complaint({"all_reduce", "--gpu", "h100", "--nccl-version", version}),
                HasSubstr("not a version of NCCL"))
        << version;
  }
  EXPECT_THAT(
      complaint({"all_reduce", "--gpu", "h100", "--nodes", "2", "--measured", measured_file()}),
      HasSubstr("measured on something else"));
  EXPECT_THAT(
      complaint(
          {"all_reduce", "--gpu", "h100", "--nccl-tests", measured_file("2097152 524288 fl")}),
      HasSubstr("line 11"));
}

}  // namespace
}  // namespace sim
