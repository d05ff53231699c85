#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "sim/cli/process/environment.h"
#include "tests/paths.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class SweepCommand : public OnerankProgram {
 protected:
  SweepCommand() { environment_["FAKE_LOG"] = path("ran"); }

  estimator::Json sweep_of(const std::vector<std::string>& flags) {
    const ProgramResult result = run(small_plan({"sweep", "--format", "json"}, flags));
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return estimator::parse_json(result.output, "stdout");
  }

  int64_t ranks_run() const {
    const std::string log = read("ran");
    return std::count(log.begin(), log.end(), '\n');
  }
};

TEST_F(SweepCommand, RunsEveryCombination) {
  const estimator::Json sweep = sweep_of({"--tp", "1,2", "--micro-batch-size", "1,2,4"});
  EXPECT_EQ(sweep.at("points").size(), 6u);
  EXPECT_EQ(sweep.at("points")[4].at("values"), estimator::Json({"2", "2"}));
  EXPECT_EQ(ranks_run(), 6);
}

TEST_F(SweepCommand, SaysWhereTheFrameworkFollowsFromTheZeroStage) {
  const auto note = HasSubstr("the rows are not of one framework (megatron-lm, torchtitan)");
  EXPECT_THAT(run(small_plan({"sweep"}, {"--zero-stage", "1,3"})).output, note);
  EXPECT_THAT(run(small_plan({"sweep"}, {"--zero-stage", "1,3", "--framework", "plain"})).output,
              Not(note));
}

TEST_F(SweepCommand, TakesNumbersWithLetters) {
  const estimator::Json sweep = sweep_of({"--seq-length", "2k,4k"});
  EXPECT_EQ(sweep.at("axes")[0].at("numbers"), estimator::Json({2048.0, 4096.0}));
}

TEST_F(SweepCommand, TakesTheNumberOfGpusWordsAndOtherKeys) {
  const estimator::Json sweep = sweep_of({"--gpus",
                                          "8,16",
                                          "--nodes",
                                          "auto",
                                          "--recompute-granularity",
                                          "full,selective",
                                          "--set",
                                          "training.optimizer=adamw,sgd"});
  ASSERT_EQ(sweep.at("axes").size(), 3u);
  EXPECT_EQ(sweep.at("points").size(), 8u);
  std::vector<int64_t> worlds;
  for (const auto& point : sweep.at("points")) worlds.push_back(point.at("result").at("gpus"));
  EXPECT_THAT(worlds, ElementsAre(8, 16, 8, 16, 8, 16, 8, 16));
}

TEST_F(SweepCommand, ShowsWhatTheRulesForbidWithItsReason) {
  const ProgramResult result = run(small_plan({"sweep"}, {"--tp", "2,3"}));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("cannot be [1]"), HasSubstr("[1] "), HasSubstr("tensor 3")));
}

TEST_F(SweepCommand, IsAnErrorIfNoCombinationIsAllowed) {
  const ProgramResult result = run(small_plan({"sweep"}, {"--tp", "3,5"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("tensor 3"));
}

// The ranks of larger global batches run no more micro-batches.
TEST_F(SweepCommand, RunsEqualRanksOnce) {
  const estimator::Json sweep = sweep_of({"--gbs", "32,64,128"});
  EXPECT_EQ(ranks_run(), 1);
  const auto& points = sweep.at("points");
  const double first = points[0].at("result").at("iteration_seconds");
  EXPECT_GT(points[2].at("result").at("iteration_seconds").get<double>(), 2 * first);
}

TEST_F(SweepCommand, TellsHowMemoryGrowsAndWhereItStopsFitting) {
  environment_["FAKE_BYTES_PER_SAMPLE"] = "21474836480";  // 20 GiB
  const ProgramResult result = run(small_plan({"sweep"}, {"--mbs", "1,2,4"}));
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("peak memory      1.00  linear"),
                    HasSubstr("--mbs 2 fits, 4 does not; by the law the limit is at 3.9"),
                    HasSubstr("the global batch is not the same in all rows (8 to 32 sequences)"),
                    HasSubstr("Most tokens/s of those that fit: --mbs")));
  environment_["FAKE_BYTES_PER_SAMPLE"] = "1";
  EXPECT_THAT(run(small_plan({"sweep"}, {"--mbs", "1,2", "--gbs", "16"})).output,
              Not(HasSubstr("the global batch is not the same")));
}

TEST_F(SweepCommand, SaysWhenNothingFits) {
  environment_["FAKE_PEAK_BYTES"] = "999999999999";
  const ProgramResult result = run(small_plan({"sweep"}, {"--mbs", "1,2"}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("None of them surely fits."));
}

TEST_F(SweepCommand, WritesCsvAndMarkdown) {
  const ProgramResult csv = run(small_plan({"sweep", "--format", "csv"}, {"--mbs", "1,2"}));
  EXPECT_THAT(csv.output, HasSubstr("--mbs,peak_bytes,headroom_bytes,iteration_seconds,"));
  EXPECT_EQ(std::count(csv.output.begin(), csv.output.end(), '\n'), 3);
  const ProgramResult markdown = run(small_plan({"sweep", "--format", "md"}, {"--mbs", "1,2"}));
  EXPECT_THAT(markdown.output, AllOf(HasSubstr("| --mbs | peak GiB |"), HasSubstr("| ---: |")));
}

TEST_F(SweepCommand, NeedsAFlagWithSeveralValuesAndAKnownFormat) {
  const ProgramResult nothing = run(small_plan({"sweep"}, {"--tp", "2"}));
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.error, AllOf(HasSubstr("nothing to sweep"), HasSubstr("--tp 1,2,4")));
  const ProgramResult format = run(small_plan({"sweep", "--format", "pdf"}, {"--tp", "1,2"}));
  EXPECT_EQ(format.exit_code, 2);
  EXPECT_THAT(format.error, HasSubstr("table, md, csv or json"));
}

TEST_F(SweepCommand, RefusesMoreCombinationsThanCanBeRun) {
  std::string many = "1";
  for (int i = 2; i <= 5000; ++i) many += "," + std::to_string(i);
  const ProgramResult result = run(small_plan({"sweep"}, {"--gbs", many}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("too many combinations"));
}

TEST_F(SweepCommand, PassesOnWhatStopsTheRankProcess) {
  environment_["FAKE_MODE"] = "lacks-gpu";
  const ProgramResult result = run(small_plan({"sweep"}, {"--mbs", "1,2"}));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(temporary_files(), IsEmpty());
}

class DiffCommand : public OnerankProgram {};

TEST_F(DiffCommand, ComparesTwoValuesOfAFlag) {
  environment_["FAKE_BYTES_PER_SAMPLE"] = "10737418240";  // 10 GiB
  const ProgramResult result = run(small_plan({"diff"}, {"--mbs", "1,2"}));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("A  --mbs 1\n"),
                    HasSubstr("training.micro_batch_size   1  2"),
                    HasSubstr("10.00 GiB  20.00 GiB  +10.00 GiB  +100.0 %")));
}

TEST_F(DiffCommand, ComparesAPlanWithAnEstimateThatWasWritten) {
  write("a.json", R"({"model": "llama3-8b", "cluster": {"gpu": "h100-sxm", "nodes": 1}})");
  const std::string estimate = path("b.json");
  const ProgramResult made =
      run({"estimate", path("a.json"), "--device", "cuda", "--tp", "2", "--output", estimate});
  ASSERT_EQ(made.exit_code, 0) << made.error;
  const ProgramResult result =
      run({"diff", path("a.json"), estimate, "--device", "cuda", "--format", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const estimator::Json diff = estimator::parse_json(result.output, "stdout");
  std::vector<std::string> paths;
  for (const auto& row : diff.at("plan")) paths.push_back(row.at("path"));
  EXPECT_THAT(paths,
              ElementsAre("parallelism.tensor", "parallelism.data", "training.global_batch_size"));
}

TEST_F(DiffCommand, ComparesMeasuredStepsWithMeasuredOnesAlone) {
  const auto written = [&](const std::string& name, const std::vector<std::string>& measured) {
    std::vector<std::string> flags = {"--output", path(name)};
    flags.insert(flags.end(), measured.begin(), measured.end());
    EXPECT_EQ(run(small_plan({"estimate"}, flags)).exit_code, 0);
    return path(name);
  };
  const auto rows = [&](const std::string& a, const std::string& b) {
    const ProgramResult result = run({"diff", a, b, "--device", "cuda", "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    const estimator::Json diff = estimator::parse_json(result.output, "stdout");
    std::map<std::string, estimator::Json> by_name;
    for (const auto& row : diff.at("numbers")) {
      by_name[row.at("name")] = row;
    }
    return by_name;
  };
  const std::string plain = written("plain.json", {});
  const std::string slow = written("slow.json", {"--measured-step", "20"});
  const std::string slower = written("slower.json", {"--measured-step", "40"});
  auto one = rows(plain, slow);
  EXPECT_EQ(one.at("tokens/s")["difference"], 0);
  EXPECT_EQ(one.at("tokens/s")["part"], "throughput, of the estimated steps");
  EXPECT_EQ(one.at("iteration, measured, of B alone")["b"], 20);
  EXPECT_TRUE(one.at("iteration, measured, of B alone")["a"].is_null());
  auto both = rows(slow, slower);
  EXPECT_EQ(both.at("iteration, measured")["difference"], 20);
  EXPECT_EQ(both.at("tokens/s")["a"], 2 * both.at("tokens/s")["b"].get<double>());
  EXPECT_EQ(both.at("tokens/s")["part"], "throughput, of the measured steps");
  EXPECT_EQ(rows(plain, plain).at("tokens/s")["part"], "throughput");
  EXPECT_THAT(run({"diff", plain, slow, "--device", "cuda"}).output,
              testing::ContainsRegex("iteration, measured, of B alone +- +20.00 s"));
}

TEST_F(DiffCommand, SaysThatEqualPlansAreEqual) {
  write("a.json", R"({"model": "llama3-8b", "cluster": {"gpu": "h100-sxm", "nodes": 1}})");
  EXPECT_THAT(run({"diff", "gpt2-1xa100", "none", "--device", "cuda"}).error,
              HasSubstr("cannot read none"));
  const ProgramResult result = run({"diff", path("a.json"), path("a.json"), "--device", "cuda"});
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("The resolved plans are equal"), Not(HasSubstr("%  +"))));
}

TEST_F(DiffCommand, NeedsTwoThingsToCompare) {
  const ProgramResult result = run(small_plan({"diff"}, {"--tp", "2"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("onerank diff A B"));
  EXPECT_THAT(run(small_plan({"diff"}, {"--tp", "1,2,4"})).error, HasSubstr("--tp has 3 values"));
}

TEST_F(SweepCommand, RunsNoRankThatIsInTheStore) {
  const std::vector<std::string> flags = {"--tp", "1,2", "--store", path("store")};
  const estimator::Json first = sweep_of(flags);
  EXPECT_EQ(ranks_run(), 2);
  EXPECT_EQ(sweep_of(flags), first);
  EXPECT_EQ(ranks_run(), 2);
  sweep_of({"--tp", "1,2,4", "--store", path("store")});
  EXPECT_EQ(ranks_run(), 3);
}

TEST_F(SweepCommand, RunsARankAgainWhoseFileInTheStoreIsOfAnother) {
  const std::vector<std::string> flags = {"--tp", "1,2", "--store", path("store")};
  sweep_of(flags);
  for (const auto& file : std::filesystem::directory_iterator(path("store"))) {
    write("store/" + file.path().filename().string(), R"({"key": "another"})");
  }
  sweep_of(flags);
  EXPECT_EQ(ranks_run(), 4);
}

TEST_F(SweepCommand, RunsARankAgainThatAnotherProgramHasRun) {
  const std::string program = write("other_rank.sh", estimator::read_file(tests::kFakeRank));
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const std::vector<std::string> flags = {"--tp", "1,2", "--store", path("store")};
  sweep_of(flags);
  environment_[kRankProcessVariable] = program;
  sweep_of(flags);
  EXPECT_EQ(ranks_run(), 2) << "a copy of the same program";
  write("other_rank.sh", estimator::read_file(tests::kFakeRank) + "\n# changed\n");
  sweep_of(flags);
  EXPECT_EQ(ranks_run(), 4);
}

TEST_F(SweepCommand, TakesABlankInTheNameOfTheTemporaryFolder) {
  environment_["TMPDIR"] = path("a folder");
  std::filesystem::create_directory(path("a folder"));
  EXPECT_EQ(sweep_of({"--tp", "1,2"}).at("points").size(), 2u);
}

/// A sweep as a job array: its scripts are run here as Slurm would run them.
class SweepJob : public SweepCommand {
 protected:
  SweepJob() {
    const ProgramResult written = run(small_plan({"sweep", "--format", "json"},
                                                 {"--tp",
                                                  "1,2,4,8",
                                                  "--overlap-grad-reduce=false",
                                                  "--slurm",
                                                  path("my job"),
                                                  "--parts",
                                                  "2"}));
    EXPECT_EQ(written.exit_code, 0) << written.error;
    EXPECT_THAT(written.output, HasSubstr("2 parts and their merge are in"));
  }

  int run_script(const std::string& name, const std::string& task = "") const {
    std::string variables = "SLURM_ARRAY_TASK_ID=" + task;
    for (const auto& [variable, value] : environment_)
      variables += " " + variable + "='" + value + "'";
    return std::system(("env " + variables + " sh '" + path("my job/" + name) + "'").c_str());
  }
};

TEST_F(SweepJob, RunsNothingWhenItIsWritten) {
  EXPECT_FALSE(std::filesystem::exists(path("ran")));
  EXPECT_THAT(read("my job/parts.sbatch"), HasSubstr("#SBATCH --array=0-1"));
}

TEST_F(SweepJob, RunsEachRankInOnePartAndNoneInTheMerge) {
  EXPECT_EQ(run_script("parts.sbatch", "0"), 0);
  EXPECT_EQ(ranks_run(), 2);
  EXPECT_EQ(run_script("parts.sbatch", "1"), 0);
  EXPECT_EQ(ranks_run(), 4);
  EXPECT_EQ(run_script("merge.sbatch"), 0);
  EXPECT_EQ(ranks_run(), 4);
  const estimator::Json merged = estimator::parse_json(read("my job/report"), "the report");
  EXPECT_EQ(merged, sweep_of({"--tp", "1,2,4,8"}));
}

TEST_F(SweepJob, GoesOnWhereItWas) {
  EXPECT_EQ(run_script("parts.sbatch", "1"), 0);
  EXPECT_EQ(run_script("parts.sbatch", "1"), 0);
  EXPECT_EQ(ranks_run(), 2);
  EXPECT_EQ(run_script("merge.sbatch"), 0);  // also where a part was not run
  EXPECT_EQ(ranks_run(), 4);
}

TEST_F(SweepCommand, RefusesAPartThatIsNoneOrHasNoStore) {
  const ProgramResult no_store = run(small_plan({"sweep"}, {"--tp", "1,2", "--part", "0/2"}));
  EXPECT_EQ(no_store.exit_code, 2);
  EXPECT_THAT(no_store.error, HasSubstr("add --store DIR"));
  for (const char* part : {"2/2", "1", "0/0", "-1/2", "a/b"}) {
    const ProgramResult none =
        run(small_plan({"sweep"}, {"--tp", "1,2", "--store", path("store"), "--part", part}));
    EXPECT_EQ(none.exit_code, 2) << part;
    EXPECT_THAT(none.error, HasSubstr("--part")) << part;
  }
}

}  // namespace
}  // namespace sim
