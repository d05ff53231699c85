// `estimate --profiles` of a program, and what is said of a program by flags.

#include <gmock/gmock.h>

#include <filesystem>

#include "estimator/base/document.h"
#include "estimator/base/fields.h"
#include "tests/estimator/cluster/small_program.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using estimator::Json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ProgramCommands : public OnerankProgram {
 protected:
  ProgramCommands() {
    std::filesystem::create_directory(path("program"));
    write("program/rank-00000.json", estimator::document_text(estimator::small_program()));
  }
  ProgramResult estimate(const std::vector<std::string>& flags) {
    std::vector<std::string> words = {"estimate", "--profiles", path("program")};
    words.insert(words.end(), flags.begin(), flags.end());
    return run(words);
  }
};

TEST_F(ProgramCommands, EstimateHasThroughputTrainingAndCost) {
  const ProgramResult result = estimate({"--global-batch-size",
                                         "16",
                                         "--seq-length",
                                         "1024",
                                         "--train-tokens",
                                         "1e9",
                                         "--price",
                                         "2"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("16,384 tokens a step (given)"),
                    HasSubstr(" samples/s"),
                    HasSubstr("MFU "),
                    HasSubstr("Training: 61,036 steps"),
                    HasSubstr("at 2 for a GPU hour (the command line, given)")));
}

TEST_F(ProgramCommands, EstimateSaysWhenTokensAreNotKnown) {
  const ProgramResult result = estimate({});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("tokens/s are not known: "));
  const ProgramResult refused = estimate({"--train-tokens", "1e9"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("give --tokens-per-step"));
}

TEST_F(ProgramCommands, EstimateAsJsonHasAllOfIt) {
  const ProgramResult result = estimate(
      {"--json", "--tokens-per-step", "1000", "--train-iters", "10", "--measured-step", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  const Json json = Json::parse(result.output);
  EXPECT_EQ(json["throughput"]["tokens_per_second"], 500);
  EXPECT_EQ(json["measured_step"]["seconds"], 2);
  EXPECT_EQ(json["training"]["seconds_without_failures"], 20);
  EXPECT_EQ(json["training"]["steps"], 10);
}

TEST_F(ProgramCommands, EstimateSaysTheFactorOfAMeasuredStep) {
  const ProgramResult result = estimate({"--measured-step", "0.01"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("10.00 ms measured (given): x "));
}

TEST_F(ProgramCommands, EstimateDrawsALineForEachStream) {
  const ProgramResult result = estimate({"--timeline"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("rank     0 stream   0 |"), HasSubstr("rank     0 stream   1 |~~~")));
}

TEST_F(ProgramCommands, EstimateRefusesWhatOnlyPlansHave) {
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--tp", "2"},
                                                {"--gpus", "8"},
                                                {"--set", "training.seed=7"},
                                                {"--max-micro-batch"},
                                                {"--max-sequence"}}) {
    const ProgramResult result = estimate(flags);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.error, HasSubstr(flags[0] + " with the profiles of a program"));
  }
}

TEST_F(ProgramCommands, EstimateRefusesNumbersOutOfRange) {
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--tokens-per-step", "0"},
                                                {"--measured-step", "0"},
                                                {"--measured-step", "-1"},
                                                {"--measured-step", "fast"},
                                                {"--price", "-1"},
                                                {"--seq-length", "0", "--gbs", "1"}}) {
    const ProgramResult result = estimate(flags);
    EXPECT_EQ(result.exit_code, 2) << flags[0] << flags[1];
    EXPECT_THAT(result.error, HasSubstr(flags[0].substr(0, 5)));
  }
}

TEST_F(ProgramCommands, CheckRefusesWhatChangesNoVerdict) {
  const ProgramResult result = run({"check", "--profiles", path("program"), "--train-iters", "10"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("--train-iters with the profiles of a program"));
}

TEST_F(ProgramCommands, APlanRefusesTheTokensOfAStep) {
  const ProgramResult result = run(small_plan({"estimate"}, {"--tokens-per-step", "8"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error,
              AllOf(HasSubstr("the flag is for programs only"), HasSubstr("--tokens-per-step")));
}

TEST_F(ProgramCommands, APlanTakesAMeasuredStep) {
  const std::vector<std::string> steps = {"--train-iters", "100", "--measured-step", "20"};
  const ProgramResult text = run(small_plan({"estimate"}, steps));
  EXPECT_EQ(text.exit_code, 0) << text.error;
  EXPECT_THAT(text.output, HasSubstr("Measured: 20.00 s for one iteration (given), "));
  std::vector<std::string> with_json = steps;
  with_json.emplace_back("--json");
  const Json json = Json::parse(run(small_plan({"estimate"}, with_json)).output);
  EXPECT_EQ(json["training"]["seconds_without_failures"], 2000);
  const double factor = json["measured_step"]["factor"];
  EXPECT_DOUBLE_EQ(factor, 20 / json["time"]["iteration_seconds"].get<double>());
  const ProgramResult refused =
      run(small_plan({"estimate"}, {"--max-micro-batch", "--measured-step", "20"}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.error, HasSubstr("--measured-step with --max-micro-batch"));
}

TEST_F(ProgramCommands, ExecRefusesWhatItsProfilesDoNotAnswer) {
  const auto exec = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), "exec");
    flags.insert(flags.end(), {"--", "python", "train.py"});
    return run(flags);
  };
  const ProgramResult json = exec({"--json", "--train-iters", "10"});
  EXPECT_EQ(json.exit_code, 2);
  EXPECT_THAT(json.error, AllOf(HasSubstr("--train-iters with --json"), HasSubstr("--estimate")));
  const ProgramResult jobs = exec({"--jobs", "0"});
  EXPECT_EQ(jobs.exit_code, 2);
  EXPECT_THAT(jobs.error, HasSubstr("--jobs = 0"));
  const ProgramResult twice = exec({"--seq-length", "8"});
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_THAT(twice.error, HasSubstr("--seq-length = 8"));
  EXPECT_THAT(exec({"--json", "--timeline"}).exit_code, Not(0));
}

}  // namespace
}  // namespace sim
