// `estimate` and `check`, with profiles from the fake rank process.

#include <gmock/gmock.h>

#include "estimator/base/fields.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using estimator::Json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kTooMuch = "90000000000";  // an H100 has 85,029,027,840

class ClusterCommands : public OnerankProgram {};

TEST_F(ClusterCommands, APlanThatFitsExitsWithZero) {
  const ProgramResult estimate = run(small_plan({"estimate"}));
  EXPECT_EQ(estimate.exit_code, 0) << estimate.error;
  EXPECT_THAT(estimate.output, StartsWith("fits: "));
  const ProgramResult check = run(small_plan({"check"}));
  EXPECT_EQ(check.exit_code, 0) << check.error;
  EXPECT_THAT(check.output, StartsWith("fits: "));
  EXPECT_THAT(temporary_files(), IsEmpty());
}

TEST_F(ClusterCommands, APlanThatDoesNotFitExitsWithOneAndSaysByHowMuchAndWhere) {
  environment_["FAKE_PEAK_BYTES"] = kTooMuch;
  const ProgramResult check = run(small_plan({"check"}));
  EXPECT_EQ(check.exit_code, 1) << check.error;
  EXPECT_THAT(check.output,
              AllOf(StartsWith("does not fit: rank 0"), HasSubstr("GiB"), EndsWith("\n")));
  EXPECT_EQ(std::count(check.output.begin(), check.output.end(), '\n'), 1);
  EXPECT_EQ(run(small_plan({"estimate"})).exit_code, 1);
  EXPECT_EQ(run(small_plan({"estimate"}, {"--exit-zero"})).exit_code, 0);
}

TEST_F(ClusterCommands, ALayoutThatCannotHoldTheStateNamesTheSearchOfOthers) {
  environment_["FAKE_PEAK_BYTES"] = kTooMuch;
  const ProgramResult check =
      run({"check", "--model", "llama3-70b", "--gpu", "h100", "--gpus", "64", "--device", "cuda"});
  EXPECT_EQ(check.exit_code, 1) << check.error;
  EXPECT_THAT(check.error,
              HasSubstr("onerank search --model llama3-70b --gpu h100 --gbs 64 --gpus 64"));
}

// With a context of 0.61 GiB it needs 79.11 of 79.19 GiB, and at most 79.67.
TEST_F(ClusterCommands, APlanThatIsTooCloseToCallDoesNotPassUnlessAskedTo) {
  environment_["FAKE_PEAK_BYTES"] = "84288733184";
  const ProgramResult check = run(small_plan({"check"}));
  EXPECT_EQ(check.exit_code, 1) << check.error;
  EXPECT_THAT(check.output, StartsWith("too close to call: rank 0"));
  EXPECT_EQ(run(small_plan({"check"}, {"--too-close", "fail"})).exit_code, 1);
  EXPECT_EQ(run(small_plan({"check"}, {"--too-close", "pass"})).exit_code, 0);
  EXPECT_EQ(run(small_plan({"estimate"}, {"--no-advice"})).exit_code, 1);
  EXPECT_EQ(run(small_plan({"estimate"}, {"--no-advice", "--too-close", "pass"})).exit_code, 0);
  const Json verdict = Json::parse(run(small_plan({"check"}, {"--json"})).output);
  EXPECT_EQ(verdict["fits"], false);
  EXPECT_EQ(verdict["outcome"], "too_close_to_call");
  const ProgramResult wrong = run(small_plan({"check"}, {"--too-close", "perhaps"}));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.error, HasSubstr("use pass or fail"));
}

TEST_F(ClusterCommands, TheReportHasTheVerdictFirstAndLast) {
  const ProgramResult result =
      run(small_plan({"estimate"}, {"--pp", "2", "--tp", "2", "--gbs", "8"}));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  std::size_t at = 0;
  for (const char* part : {"fits: ",
                           "simulated world 8 (from the plan)",
                           "Peak memory of each class",
                           "Memory of rank",
                           "One iteration",
                           "--sources shows where these numbers come from: ",
                           "\n\nfits: "}) {
    const std::size_t found = result.output.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << " in\n" << result.output;
    at = found;
  }
}

TEST_F(ClusterCommands, ACheckOfSeveralPlansHasALineForEachAndTheWorstExitCode) {
  const std::string good = path("good.json");
  EXPECT_EQ(run(small_plan({"estimate"}, {"--write-plan", good})).exit_code, 0);
  const std::string bad = write("bad.json", R"({"model": "gpt5", "cluster": {"gpu": "h100"}})");
  EXPECT_EQ(run({"check", good, good, "--device", "cpu"}).exit_code, 0);
  const ProgramResult result = run({"check", good, bad, "--device", "cpu"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output, HasSubstr(good + ": fits: "));
  EXPECT_THAT(result.output, HasSubstr(bad + ": error: unknown model: "));
  const Json json = Json::parse(run({"check", good, bad, "--device", "cpu", "--json"}).output);
  EXPECT_EQ(json["kind"], "verdicts");
  EXPECT_EQ(json["plans"][0]["exit_code"], 0);
  EXPECT_EQ(json["plans"][1]["errors"][0]["what"], "unknown model");
}

// 75 GiB of 79.19 are 94.7 %.
TEST_F(ClusterCommands, ACheckOfSeveralPlansSaysWhichIsTooFull) {
  environment_["FAKE_PEAK_BYTES"] = "79000000000";
  const std::string plan = path("full.json");
  run(small_plan({"estimate"}, {"--write-plan", plan}));
  const ProgramResult result =
      run({"check", plan, plan, "--device", "cpu", "--health", "balanced"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output,
              testing::ContainsRegex(": fits: .*\n  health: 9[0-9.]+ % of the GPU's memory at the "
                                     "peak, warning"));
}

TEST_F(ClusterCommands, ErrorsAreJsonToo) {
  const ProgramResult result = run(small_plan({"check"}, {"--tp", "3", "--json"}));
  EXPECT_EQ(result.exit_code, 2);
  const Json error = Json::parse(result.output);
  EXPECT_EQ(error["kind"], "error");
  EXPECT_EQ(error["schema_version"], 1);
  EXPECT_EQ(error["exit_code"], 2);
  EXPECT_THAT(error["errors"][0]["where"], HasSubstr("tensor 3"));
  EXPECT_THAT(error["errors"][0]["way_out"], Not(IsEmpty()));
  EXPECT_THAT(result.error, StartsWith("error: "));
}

TEST_F(ClusterCommands, HeadroomIsASizeOrAShareOfTheGpu) {
  // The fake rank needs a few GiB of 79.19.
  EXPECT_EQ(run(small_plan({"check"}, {"--headroom", "10%"})).exit_code, 0);
  const ProgramResult share = run(small_plan({"check"}, {"--headroom", "99.9%"}));
  EXPECT_EQ(share.exit_code, 1);
  EXPECT_THAT(share.output, HasSubstr("less than the headroom of 79.11 GiB"));  // 0.999 x 79.19
  EXPECT_THAT(run(small_plan({"check"}, {"--headroom", "79GiB"})).output,
              HasSubstr("the headroom of 79.00 GiB"));
  const ProgramResult wrong = run(small_plan({"check"}, {"--headroom", "much"}));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.error, HasSubstr("--headroom = \"much\""));
}

TEST_F(ClusterCommands, AVerdictSaysHowFullTheGpuIs) {
  EXPECT_THAT(run(small_plan({"check"})).output,
              HasSubstr("% of the GPU's memory at the peak, within the target of 90 % (balanced)"));
  const ProgramResult json = run(small_plan({"check"}, {"--json", "--health", "conservative"}));
  EXPECT_EQ(Json::parse(json.output)["health"]["thresholds"], "conservative");
  const ProgramResult wrong = run(small_plan({"check"}, {"--health", "bold"}));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.error, HasSubstr("use balanced, aggressive or conservative"));
}

TEST_F(ClusterCommands, OnlyAdviceThatIsThereIsAppliedToAWrittenPlan) {
  const ProgramResult wrong =
      run(small_plan({"estimate"}, {"--write-plan", path("plan.json"), "--apply", "1"}));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.error, HasSubstr("--apply = 1, 0 are given"));
  const ProgramResult nowhere = run(small_plan({"estimate"}, {"--apply", "1"}));
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_THAT(nowhere.error, HasSubstr("give --write-plan FILE"));
}

TEST_F(ClusterCommands, AWrittenPlanGivesTheSameEstimateAgain) {
  const auto estimate = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "estimate");
    arguments.insert(arguments.end(), {"--device", "cuda", "--json"});
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return result.output;
  };
  for (const char* gpus : {"4", "16"}) {
    const std::string plan = path("plan.json");
    const std::string first = estimate({"--model",
                                        "llama3-8b",
                                        "--gpu",
                                        "h100-sxm",
                                        "--tp",
                                        "2",
                                        "--gpus",
                                        gpus,
                                        "--write-plan",
                                        plan});
    EXPECT_EQ(estimate({plan}), first) << gpus;
    environment_["WORLD_SIZE"] = gpus;
    const std::string launched =
        estimate({"--model", "llama3-8b", "--gpu", "h100-sxm", "--tp", "2", "--write-plan", plan});
    environment_.erase("WORLD_SIZE");
    EXPECT_EQ(estimate({plan}), launched) << gpus;
    EXPECT_TRUE(Json::parse(read("plan.json"))["training"].contains("global_batch_size"));
  }
}

TEST_F(ClusterCommands, AMeasuredStepIsNotFasterThanTheGpu) {
  const ProgramResult result = run(small_plan({"estimate"}, {"--measured-step", "0.001"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error,
              AllOf(HasSubstr("would do more than its peak"),
                    HasSubstr("--measured-step = 0.001: MFU "),
                    HasSubstr("at the peak it takes ")));
}

TEST_F(ClusterCommands, FormulasStandBesideWhatWasExecuted) {
  const ProgramResult text = run(small_plan({"estimate"}, {"--formulas"}));
  EXPECT_EQ(text.exit_code, 0) << text.error;
  EXPECT_THAT(text.output,
              AllOf(HasSubstr("By the book"),
                    HasSubstr("2 x P"),
                    HasSubstr("ranks that share one copy (data / replicas)")));
  const ProgramResult json =
      run(small_plan({"estimate"}, {"--decode-tokens", "8k", "--json", "--no-advice"}));
  EXPECT_EQ(Json::parse(json.output)["textbook"].back()["name"], "keys and values of 8192 tokens");
  EXPECT_THAT(Json::parse(run(small_plan({"estimate"}, {"--json"})).output)["textbook"], IsEmpty());
  const ProgramResult wrong = run(small_plan({"estimate"}, {"--decode-tokens", "none"}));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.error, HasSubstr("--decode-tokens"));
}

TEST_F(ClusterCommands, AnEstimateIsWrittenForOthers) {
  const ProgramResult markdown = run(small_plan({"estimate"}, {"--format", "md", "--formulas"}));
  EXPECT_EQ(markdown.exit_code, 0) << markdown.error;
  EXPECT_THAT(markdown.output,
              AllOf(StartsWith("## fits: "),
                    HasSubstr("\n### One iteration: "),
                    HasSubstr("\n| part | time | share |\n"),
                    HasSubstr("| weights | ")));
  const ProgramResult csv = run(small_plan({"estimate"}, {"--format", "csv"}));
  EXPECT_THAT(csv.output,
              AllOf(StartsWith("# Peak memory of each class"), HasSubstr("\npart,time,share\n")));
  EXPECT_EQ(Json::parse(run(small_plan({"estimate"}, {"--format", "json"})).output)["kind"],
            "cluster_estimate");
  const ProgramResult picture = run(small_plan({"estimate"}, {"--timeline", "--json"}));
  EXPECT_EQ(picture.exit_code, 2);
  EXPECT_THAT(picture.error, HasSubstr("--trace FILE"));
}

TEST_F(ClusterCommands, GpusThatAreTypedTakePrecedenceOverTheMachinesOfAFile) {
  const std::string plan = write(
      "plan.json",
      R"({"model": "llama3-8b", "cluster": {"gpu": "h100", "nodes": 1}, "parallelism": {"tensor": 2}})");
  const ProgramResult result = run({"estimate", plan, "--gpus", "16", "--device", "cpu"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("16 x NVIDIA H100 80GB HBM3 in nodes of 8"));
  const ProgramResult clash =
      run({"check", plan, "--gpus", "16", "--nodes", "1", "--device", "cpu"});
  EXPECT_EQ(clash.exit_code, 2);
}

TEST_F(ClusterCommands, AModelMayBeASizeAndATrainingARule) {
  const std::vector<std::string> plan = {"--model", "7b", "--gpu", "h100", "--nodes", "1"};
  std::vector<std::string> arguments = {"check", "--train-tokens", "chinchilla", "--device", "cpu"};
  arguments.insert(arguments.end(), plan.begin(), plan.end());
  const ProgramResult check = run(arguments);
  EXPECT_EQ(check.exit_code, 0) << check.error;
  EXPECT_THAT(check.error,
              AllOf(HasSubstr("assumed: 7b is only a size, and is taken as Llama's architecture of "
                              "32 layers of width 4,096"),
                    HasSubstr("training of 134,768,312,320 tokens")));  // 20 x 6,738,415,616
}

TEST_F(ClusterCommands, TheReportSaysWhatTheStepOfTheWorstRankIs) {
  const ProgramResult result = run(small_plan({"estimate"}));
  EXPECT_THAT(result.output, AllOf(HasSubstr("FLOP/byte"), HasSubstr("for each token of a micro")));
  EXPECT_EQ(
      Json::parse(run(small_plan({"estimate"}, {"--json"})).output)["worst_rank_step"]["rank"], 0);
}

TEST_F(ClusterCommands, SourcesAreShownWhereTheyAreAskedFor) {
  EXPECT_THAT(run(small_plan({"estimate"})).output, Not(HasSubstr("Not modelled")));
  const std::string report = run(small_plan({"estimate"}, {"--sources"})).output;
  for (const char* part : {"\nHow fast the GPU", "\nAssumed\n", "\nNot modelled\n"}) {
    EXPECT_THAT(report, HasSubstr(part));
  }
}

TEST_F(ClusterCommands, VerdictsHaveColoursWhereTheyAreWanted) {
  EXPECT_THAT(run(small_plan({"check"})).output, StartsWith("fits: "));
  environment_["CLICOLOR_FORCE"] = "1";
  EXPECT_THAT(run(small_plan({"check"})).output, StartsWith("\x1b[1;32mfits:\x1b[0m "));
  environment_["NO_COLOR"] = "1";
  EXPECT_THAT(run(small_plan({"check"})).output, StartsWith("fits: "));
}

TEST_F(ClusterCommands, JsonIsTheOnlyThingOnStandardOutputAndInTheFile) {
  const ProgramResult result =
      run(small_plan({"estimate"}, {"--json", "--output", path("estimate.json")}));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  const Json estimate = Json::parse(result.output);
  EXPECT_EQ(estimate["kind"], "cluster_estimate");
  EXPECT_EQ(estimate["verdict"]["fits"], true);
  EXPECT_EQ(read("estimate.json"), result.output);
  EXPECT_EQ(Json::parse(run(small_plan({"check"}, {"--json"})).output)["fits"], true);
}

TEST_F(ClusterCommands, AnEstimateWritesAndDrawsTheStep) {
  const ProgramResult result = run(small_plan(
      {"estimate"}, {"--pp", "2", "--gbs", "8", "--trace", path("step.json"), "--timeline"}));
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("\nThe step"));
  EXPECT_FALSE(Json::parse(read("step.json")).at("traceEvents").empty());
  EXPECT_EQ(run(small_plan({"estimate"}, {"--trace", path("none/step.json")})).exit_code, 2);
  EXPECT_EQ(run(small_plan({"estimate"}, {"--timeline", "--json"})).exit_code, 2);
}

TEST_F(ClusterCommands, KeptProfilesGiveTheSameEstimateAgainWithoutARank) {
  const ProgramResult first = run(small_plan(
      {"estimate"}, {"--pp", "2", "--gbs", "8", "--keep-profiles", path("kept"), "--json"}));
  EXPECT_EQ(first.exit_code, 0) << first.error;
  environment_["ONERANK_RANK_PROCESS"] = path("none");
  const ProgramResult second = run(
      small_plan({"estimate"}, {"--pp", "2", "--gbs", "8", "--profiles", path("kept"), "--json"}));
  EXPECT_EQ(second.exit_code, 0) << second.error;
  EXPECT_EQ(second.output, first.output);
}

TEST_F(ClusterCommands, ProfilesThatAreMissingForeignOrOfAnotherPlanAreRefused) {
  const ProgramResult empty = run(small_plan({"estimate"}, {"--profiles", path("tmp")}));
  EXPECT_EQ(empty.exit_code, 2);
  EXPECT_THAT(empty.error, HasSubstr("no file there is named rank-*.json"));

  write("tmp/rank-00000.json", "{}");
  const ProgramResult foreign = run(small_plan({"estimate"}, {"--profiles", path("tmp")}));
  EXPECT_EQ(foreign.exit_code, 2);
  EXPECT_THAT(foreign.error, HasSubstr("is not a rank profile"));

  ASSERT_EQ(run(small_plan({"estimate"}, {"--keep-profiles", path("tmp")})).exit_code, 0);
  const ProgramResult other =
      run(small_plan({"estimate"}, {"--profiles", path("tmp"), "--tp", "2"}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.error, HasSubstr("parallelism.tensor"));
}

TEST_F(ClusterCommands, ProfilesOfAnotherDeviceStandForThePlansGpuOnlyWhereTheUserSaysSo) {
  ASSERT_EQ(run(small_plan({"estimate"}, {"--keep-profiles", path("tmp")})).exit_code, 0);
  const std::vector<std::string> kept = {"--profiles", path("tmp")};
  EXPECT_EQ(run(small_plan({"estimate"}, kept)).exit_code, 0);  // says --device cuda
  for (const char* device : {"auto", "virtual", "cpu"}) {
    const ProgramResult result =
        run(small_plan({"check"}, {"--profiles", path("tmp"), "--device", device}));
    EXPECT_EQ(result.exit_code, 2) << device;
    EXPECT_THAT(result.error, HasSubstr("rank 0 is of another device than the plan's GPU"));
    EXPECT_THAT(result.error, HasSubstr("device.name = Fake GPU"));
    EXPECT_THAT(result.error, HasSubstr("--device cuda"));
  }
}

TEST_F(ClusterCommands, ADocumentsNameDoesNotPromiseAnotherFormat) {
  for (const char* command : {"estimate", "roofline", "run"}) {
    const ProgramResult result = run(small_plan({command}, {"--output", path("r.csv")}));
    EXPECT_EQ(result.exit_code, 2) << command;
    EXPECT_THAT(result.error, HasSubstr("the file is JSON"));
    EXPECT_EQ(read("r.csv"), "");
  }
  EXPECT_EQ(run(small_plan({"run"}, {"--output", path("profile")})).exit_code, 0);
}

TEST_F(ClusterCommands, ALongTrainingHasACostInWords) {
  const ProgramResult result = run(small_plan(
      {"estimate"}, {"--no-advice", "--price", "1e6", "--train-iters", "1000000000000"}));
  EXPECT_THAT(result.output, HasSubstr("US dollars at 1e+06"));
  EXPECT_THAT(result.output, testing::Not(HasSubstr("-9,223")));
  EXPECT_EQ(run(small_plan({"estimate"}, {"--price", "1e308"})).exit_code, 2);
}

TEST_F(ClusterCommands, SayWhichAllocatorSettingsTheyTookFromAVariable) {
  environment_["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True";
  const std::string line = "allocator expandable_segments:True (from PYTORCH_CUDA_ALLOC_CONF)\n";
  EXPECT_THAT(run(small_plan({"estimate"})).output, HasSubstr(line));
  EXPECT_THAT(run(small_plan({"estimate"}, {"--json"})).error, HasSubstr(line));
  EXPECT_THAT(run(small_plan({"check"})).error, HasSubstr(line));
  EXPECT_THAT(run(small_plan({"run"})).output, HasSubstr(line));
}

}  // namespace
}  // namespace sim
