// The search over fake ranks, which need 10 GiB for each sample of a micro-batch and have no
// pipeline.
#include <gmock/gmock.h>

#include <csignal>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>
#include <thread>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class SearchCommand : public OnerankProgram {
 protected:
  SearchCommand() { environment_["FAKE_BYTES_PER_SAMPLE"] = "10737418240"; }

  ProgramResult search(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "search", "--model", "llama3-8b", "--gpu", "h100-sxm", "--device", "cuda"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
};

TEST_F(SearchCommand, ExecutesTheFastestLayoutsWhole) {
  const ProgramResult result = search({"--gpus", "8", "--pp", "1", "--gbs", "32", "--top", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("The fastest that fit, executed whole"),
                    HasSubstr("layouts were composed from"),
                    HasSubstr("fits")));
}

TEST_F(SearchCommand, SaysHowManyGpusTheStateOfTheModelNeeds) {
  environment_["FAKE_BYTES_PER_SAMPLE"] = "85899345920";
  const ProgramResult result = run({"search",
                                    "--model",
                                    "llama3-405b",
                                    "--gpu",
                                    "a100-40",
                                    "--device",
                                    "cuda",
                                    "--gpus",
                                    "8",
                                    "--pp",
                                    "1",
                                    "--gbs",
                                    "64"});
  EXPECT_EQ(result.exit_code, 1) << result.error;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("None of the layouts surely fits."),
                    HasSubstr("optimizer state alone need"),
                    HasSubstr("A layout is found by\n    onerank search --model llama3-405b")));
}

TEST_F(SearchCommand, GivesACommandThatEstimatesTheLayout) {
  const ProgramResult result = search({"--gpus",
                                       "8,16",
                                       "--pp",
                                       "1",
                                       "--tp",
                                       "2,4",
                                       "--gbs",
                                       "32",
                                       "--framework",
                                       "megatron-lm",
                                       "--top",
                                       "1",
                                       "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const estimator::Json best = estimator::parse_json(result.output, "stdout").at("best")[0];
  const auto command = best.at("command").get<std::string>();
  EXPECT_THAT(command, testing::StartsWith("onerank estimate --model llama3-8b --gpu h100-sxm"));
  EXPECT_THAT(command, HasSubstr("--framework megatron-lm"));
  EXPECT_THAT(command, HasSubstr(best.at("flags").get<std::string>()));
  std::istringstream words(command);
  std::vector<std::string> arguments{std::istream_iterator<std::string>(words), {}};
  arguments.erase(arguments.begin());
  arguments.emplace_back("--json");
  const ProgramResult estimate = run(arguments);
  ASSERT_EQ(estimate.exit_code, 0) << estimate.error;
  const estimator::Json time = estimator::parse_json(estimate.output, "stdout").at("time");
  EXPECT_EQ(time.at("iteration_seconds"), best.at("executed_iteration_seconds"));
}

TEST_F(SearchCommand, VariesOnlyTheListedValues) {
  const ProgramResult result = search({"--gpus",
                                       "8",
                                       "--pp",
                                       "1",
                                       "--cp",
                                       "1",
                                       "--tp",
                                       "2,8",
                                       "--mbs",
                                       "2",
                                       "--gbs",
                                       "32",
                                       "--recompute-granularity",
                                       "full",
                                       "--zero-stage",
                                       "1",
                                       "--check",
                                       "9",
                                       "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const estimator::Json found = estimator::parse_json(result.output, "stdout");
  std::set<std::string> flags;
  for (const auto& layout : found.at("checked")) flags.insert(layout.at("flags"));
  EXPECT_EQ(flags,
            (std::set<std::string>{"--tp 2 --sp --overlap-grad-reduce --overlap-param-gather",
                                   "--tp 8 --sp"}));
}

TEST_F(SearchCommand, SaysWhatItHasFoundWhenItIsInterrupted) {
  environment_["FAKE_HANGS"] = path("hangs");
  environment_["FAKE_HANGS_AFTER"] = "3";
  const pid_t onerank = start({"search",
                               "--model",
                               "llama3-8b",
                               "--gpu",
                               "h100-sxm",
                               "--device",
                               "cuda",
                               "--gpus",
                               "8",
                               "--pp",
                               "1",
                               "--gbs",
                               "32"});
  for (int i = 0; i < 500 && !std::filesystem::exists(path("hangs")); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  kill(onerank, SIGINT);
  const ProgramResult result = finish(onerank);
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("The fastest that fit, composed"),
                    HasSubstr("layouts were composed from"),
                    HasSubstr("Interrupted: this is what was found until then")));
  // Another rank may still have run when the fourth one hung.
  EXPECT_THAT(result.output, testing::ContainsRegex("\n[23] of [0-9]+ layouts"));
  EXPECT_THAT(temporary_files(), testing::IsEmpty());
}

TEST_F(SearchCommand, OfLayoutsWhoseStateIsLargerThanAGpuExecutesOneToSayHowLarge) {
  environment_["FAKE_LOG"] = path("ran");
  const ProgramResult result = run({"search",
                                    "--model",
                                    "qwen3-235b-a22b",
                                    "--gpu",
                                    "h100-sxm",
                                    "--device",
                                    "cuda",
                                    "--gpus",
                                    "8",
                                    "--gbs",
                                    "32",
                                    "--tp",
                                    "8",
                                    "--pp",
                                    "1",
                                    "--cp",
                                    "1",
                                    "--mbs",
                                    "1",
                                    "--recompute-granularity",
                                    "full"});
  EXPECT_EQ(result.exit_code, 1) << result.error;  // 235e9 x 6 bytes are 164 GiB for each of 8
  EXPECT_THAT(result.output, HasSubstr("the model's state alone is larger than a GPU"));
  EXPECT_EQ(read("ran"), "rank 0\n");
}

TEST_F(SearchCommand, FixesWhatIsGiven) {
  const ProgramResult result = search({"--gpus",
                                       "8",
                                       "--pp",
                                       "1",
                                       "--cp",
                                       "1",
                                       "--tp",
                                       "4",
                                       "--mbs",
                                       "2",
                                       "--gbs",
                                       "32",
                                       "--json",
                                       "--check",
                                       "3"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const estimator::Json found = estimator::parse_json(result.output, "stdout");
  const auto& world = found.at("worlds")[0];
  const int64_t allowed = world.at("layouts").get<int64_t>() - world.at("refused").get<int64_t>();
  EXPECT_EQ(allowed, 4);  // with and without recompute, ZeRO stages 0 and 1
  EXPECT_EQ(found.at("checked").size(), 3u);
  for (const auto& layout : found.at("best")) {
    EXPECT_THAT(layout.at("flags").get<std::string>(), Not(HasSubstr("--tp")));
    EXPECT_EQ(layout.at("peak_bytes"), layout.at("executed_peak_bytes"));
  }
}

TEST_F(SearchCommand, TellsTheFewestGpusThatHoldTheModel) {
  const ProgramResult result =
      search({"--max-gpus", "16", "--pp", "1", "--mbs", "1", "--gbs", "32", "--top", "1"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, HasSubstr("Fewest GPUs that hold it: 8"));
}

TEST_F(SearchCommand, SearchesWholeMachinesUpToTheMostGpus) {
  const std::vector<std::pair<std::string, std::vector<int64_t>>> cases = {
      {"4", {4}}, {"12", {8}}, {"16", {8, 16}}, {"30", {8, 16, 24}}};
  for (const auto& [most, worlds] : cases) {
    const ProgramResult result = search({"--max-gpus",
                                         most,
                                         "--tp",
                                         "2",
                                         "--pp",
                                         "1",
                                         "--cp",
                                         "1",
                                         "--mbs",
                                         "1",
                                         "--gbs",
                                         "48",
                                         "--top",
                                         "1",
                                         "--json"});
    const estimator::Json found = estimator::parse_json(result.output, "stdout");
    std::vector<int64_t> searched;
    for (const auto& world : found.at("worlds")) searched.push_back(world.at("gpus"));
    EXPECT_EQ(searched, worlds) << result.error;
    const bool is_rounded = worlds.back() != std::stoll(most);
    EXPECT_EQ(result.error.find("not a whole number of machines of 8 GPUs") != std::string::npos,
              is_rounded)
        << most;
  }
}

TEST_F(SearchCommand, NamesTheFewestGpusInAnyOrder) {
  for (const char* gpus : {"16,8", "8,16,8"}) {
    const ProgramResult result =
        search({"--gpus", gpus, "--pp", "1", "--mbs", "1", "--gbs", "32", "--top", "1", "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.error;
    const estimator::Json found = estimator::parse_json(result.output, "stdout");
    EXPECT_EQ(found.at("fewest_gpus"), 8);
    EXPECT_EQ(found.at("worlds").size(), 2u);
  }
}

/// One layout on each of two numbers of GPUs, whose pieces have another global batch than it has.
std::vector<std::string> one_layout(const std::string& gpus) {
  return {"--gpus",
          gpus,
          "--pp",
          "1",
          "--tp",
          "1",
          "--cp",
          "1",
          "--mbs",
          "1",
          "--recompute-granularity",
          "none",
          "--zero-stage",
          "1",
          "--gbs",
          "32"};
}

// The pieces need 10 GiB, the whole layout 100.
TEST_F(SearchCommand, FindsNoFewestGpusWhereWhatFitsComposedDoesNotFitExecuted) {
  environment_["FAKE_WHOLE_BATCH"] = "32";
  environment_["FAKE_WHOLE_BYTES"] = "107374182400";
  const ProgramResult result = search(one_layout("8,16"));
  EXPECT_EQ(result.exit_code, 1) << result.error;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("None of the layouts surely fits."),
                    HasSubstr("No number of GPUs in this search holds it."),
                    HasSubstr("on 8 the leanest layout needs 10")));
}

// Composed it is too close to call; whole it needs 20 GiB.
TEST_F(SearchCommand, FindsTheFewestGpusAmongWhatFitsExecuted) {
  environment_["FAKE_BYTES_PER_SAMPLE"] = "83000000000";
  environment_["FAKE_WHOLE_BATCH"] = "32";
  environment_["FAKE_WHOLE_BYTES"] = "21474836480";
  const ProgramResult two = search(one_layout("8,16"));
  EXPECT_EQ(two.exit_code, 0) << two.output;
  EXPECT_THAT(two.output, HasSubstr("Fewest GPUs that hold it: 8"));
  EXPECT_EQ(search(one_layout("8")).exit_code, 0);
}

TEST_F(SearchCommand, SaysWhyNoLayoutIsAllowed) {
  const ProgramResult result =
      search({"--gpus", "8", "--pp", "1", "--tp", "3", "--gbs", "32", "--zero-stage", "1"});
  EXPECT_EQ(result.exit_code, 1) << result.error;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("no layout is allowed on 8 GPUs:"),
                    HasSubstr("tensor x context x pipeline does not divide the GPUs"),
                    HasSubstr("There is no layout to compose.")));
}

TEST_F(SearchCommand, RefusesTwoNumbersOfGpus) {
  const ProgramResult result = search({"--gpus", "8", "--max-gpus", "16", "--gbs", "32"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("--max-gpus 16 and --gpus 8"));
}

TEST_F(SearchCommand, WritesAllItsTablesAsCsv) {
  std::vector<std::string> flags = one_layout("8,16");
  flags.insert(flags.end(), {"--format", "csv"});
  const ProgramResult result = search(flags);
  EXPECT_THAT(result.output, testing::StartsWith("# The layouts of each number of GPUs\nGPUs,"));
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("# The fastest that fit, executed whole"),
                    testing::ContainsRegex("step, s\"?,\"?step, composed"),
                    HasSubstr("(Pareto front, composed)")));
  EXPECT_THAT(result.output, testing::ContainsRegex("\n[0-9.e-]+,[+-][0-9.]+ %,"));
}

TEST_F(SearchCommand, SaysThatNothingFits) {
  environment_["FAKE_BYTES_PER_SAMPLE"] = "107374182400";
  const ProgramResult result = search({"--gpus", "8", "--pp", "1", "--gbs", "32"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("None of the layouts surely fits."));
}

TEST_F(SearchCommand, AsksForWhatItNeeds) {
  EXPECT_THAT(search({"--gbs", "32"}).error, HasSubstr("--max-gpus N"));
  EXPECT_THAT(search({"--gpus", "8"}).error, HasSubstr("--global-batch-size"));
  const ProgramResult gpipe =
      search({"--gpus", "8", "--gbs", "32", "--pp", "2", "--pipeline-schedule", "gpipe"});
  EXPECT_EQ(gpipe.exit_code, 2);
  EXPECT_THAT(gpipe.error, AllOf(HasSubstr("cannot be composed"), HasSubstr("onerank sweep")));
}

TEST_F(SearchCommand, SaysThatHybridShardingCannotBeComposed) {
  const ProgramResult hybrid =
      search({"--gpus", "8", "--gbs", "32", "--fsdp", "--data-parallel-replicate-degree", "2"});
  EXPECT_EQ(hybrid.exit_code, 2);
  EXPECT_THAT(hybrid.error,
              AllOf(HasSubstr("cannot be composed: its optimizer has several instances"),
                    HasSubstr("onerank sweep")));
}

// Whose state alone is larger than these GPUs, as far as is known of it.
TEST_F(SearchCommand, SaysWhatCannotBeComposedBeforeItLooksAtSizes) {
  const auto search_405b = [&](std::vector<std::string> more) {
    std::vector<std::string> flags = {"search",
                                      "--model",
                                      "llama3-405b",
                                      "--gpu",
                                      "a100-40",
                                      "--device",
                                      "cuda",
                                      "--gpus",
                                      "8",
                                      "--gbs",
                                      "32",
                                      "--pp",
                                      "1"};
    flags.insert(flags.end(), more.begin(), more.end());
    return run(flags);
  };
  const ProgramResult muon = search_405b({"--optimizer", "muon"});
  EXPECT_EQ(muon.exit_code, 2) << muon.output;
  EXPECT_THAT(muon.error, HasSubstr("cannot be composed: its optimizer updates whole matrices"));
  const ProgramResult offloaded =
      search_405b({"--use-distributed-optimizer", "--optimizer-cpu-offload"});
  EXPECT_EQ(offloaded.exit_code, 2) << offloaded.output;
  EXPECT_THAT(offloaded.error, HasSubstr("cannot be composed: its optimizer is offloaded"));
}

TEST_F(SearchCommand, RefusesNumbersThatAreOutOfRange) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{"--gpus", "8", "--tp", "0"}, "--tp = 0"},
      {{"--gpus", "8", "--tp", "1,0"}, "--tp = 0"},
      {{"--gpus", "8", "--pp", "0"}, "--pp = 0"},
      {{"--gpus", "8", "--vpp", "0"}, "--vpp = 0"},
      {{"--gpus", "0"}, "= 0"},
      {{"--gpus", "8,0"}, "--gpus = 0"},
      {{"--nodes", "0"}, "--nodes = 0"},
      {{"--nodes", "4611686018427387904"}, "--nodes = 4611686018427387904"},
      {{"--nodes", "5000000"}, "--nodes = 5000000"},
      {{"--nodes", "1000000"}, "8000000"},
      {{"--max-gpus", "8", "--gpus-per-node", "0"}, "--gpus-per-node = 0"},
      {{"--max-gpus", "9000000000000000000"}, "--max-gpus = 9000000000000000000"},
      {{"--gpus", "8", "--top", "0"}, "--top = 0"},
      {{"--gpus", "8", "--top", "-1"}, "--top = -1"}};
  limits_[RLIMIT_CPU] = 5;  // where it would loop for ever
  for (auto [flags, named] : mistakes) {
    flags.insert(flags.end(), {"--gbs", "8"});
    const ProgramResult result = search(flags);
    EXPECT_EQ(result.exit_code, 2) << named;
    EXPECT_THAT(result.error, HasSubstr(named));
  }
}

TEST_F(SearchCommand, ExecutesInPartsWhatTheWholeThenFindsInTheStore) {
  environment_["FAKE_LOG"] = path("ran");
  const auto ranks_run = [&] {
    const std::string log = read("ran");
    return std::count(log.begin(), log.end(), '\n');
  };
  const auto of_job = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--gpus",
                                      "8",
                                      "--pp",
                                      "1",
                                      "--cp",
                                      "1",
                                      "--gbs",
                                      "64",
                                      "--top",
                                      "1",
                                      "--json",
                                      "--store",
                                      path("store")};
    flags.insert(flags.end(), more.begin(), more.end());
    const ProgramResult result = search(flags);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return result.output;
  };
  EXPECT_THAT(of_job({"--part", "0/2"}), HasSubstr("ranks are kept"));
  const auto of_first = ranks_run();
  EXPECT_GT(of_first, 0);
  of_job({"--part", "1/2"});
  const auto pieces = ranks_run();
  EXPECT_GT(pieces, of_first);
  const estimator::Json merged = estimator::parse_json(of_job({}), "stdout");
  EXPECT_EQ(merged.at("pieces_run"), pieces);
  const auto all = ranks_run();
  EXPECT_LE(all, pieces + 1);  // the best one, where it is no piece
  of_job({});
  EXPECT_EQ(ranks_run(), all);
}

}  // namespace
}  // namespace sim
