// What a user can get wrong: each time the designed error, exit code 2, and nothing written.

#include <gmock/gmock.h>

#include "estimator/base/files.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::StartsWith;

class BadInput : public OnerankProgram {
 protected:
  /// Expects that `onerank run` with the arguments is refused, and names what it should name.
  void expect_refused(std::vector<std::string> arguments, const std::vector<std::string>& named) {
    const std::string shown = testing::PrintToString(arguments);
    arguments.insert(arguments.end(), {"--output", path("profile.json")});
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << shown << result.error;
    EXPECT_THAT(result.error, StartsWith("error: ")) << shown;
    EXPECT_THAT(result.error, HasSubstr("\n  help: ")) << shown;
    for (const std::string& text : named) EXPECT_THAT(result.error, HasSubstr(text)) << shown;
    EXPECT_EQ(result.output, "") << shown;
    EXPECT_FALSE(std::filesystem::exists(path("profile.json"))) << shown;
    EXPECT_THAT(temporary_files(), IsEmpty()) << shown;
  }

  void expect_flags_refused(const std::vector<std::string>& flags,
                            const std::vector<std::string>& named) {
    expect_refused(small_plan({"run"}, flags), named);
  }

  void expect_plan_refused(const std::string& plan, const std::vector<std::string>& named) {
    expect_refused({"run", write("plan.json", plan)}, named);
  }
};

TEST_F(BadInput, UnknownNamesGetTheNearestKnownOne) {
  expect_flags_refused({"--model", "lama3-8b"},
                       {"unknown model", "--model = \"lama3-8b\"", "did you mean llama3-8b?"});
  expect_flags_refused({"--gpu", "h100-smx"},
                       {"unknown GPU", "--gpu = \"h100-smx\"", "did you mean h100-sxm?"});
  expect_plan_refused(R"({"model": "gpt2", "paralelism": {}})",
                      {"unknown key", "plan.json: paralelism", "did you mean parallelism?"});
  expect_flags_refused({"--inter-link", "ib-ndr-401"},
                       {"unknown link", "did you mean ib-ndr-400?"});
  expect_flags_refused({"--framework", "megatrn"}, {"unknown value", "--framework = \"megatrn\""});
  expect_flags_refused({"--tpp", "2"}, {"unknown flag", "--tpp", "did you mean --tp?"});
  expect_flags_refused({"--device", "cudaa"}, {"unknown device", "did you mean cuda?"});
}

TEST_F(BadInput, AnotherDocumentOfOursIsNamedInOneError) {
  expect_plan_refused(R"({"schema_version": 1, "kind": "rank_profile", "tool": {}, "rank": 0})",
                      {"this is not a plan, but another document of Onerank",
                       "kind = rank_profile",
                       "onerank estimate --profiles DIR"});
  const ProgramResult result =
      run({"check", write("p.json", R"({"schema_version": 1, "kind": "sweep", "rows": []})")});
  EXPECT_EQ(result.error.find("error: "), result.error.rfind("error: ")) << result.error;
}

TEST_F(BadInput, DropoutInAttentionThatTheCpuHasNoKernelFor) {
  expect_flags_refused(
      {"--device", "cpu", "--attention-dropout", "0.1", "--attention-backend", "flash"},
      {"on the device cpu only unfused attention has dropout",
       "--device cpu with --attention-dropout 0.1 and --attention-backend flash",
       "use --attention-dropout 0, --attention-backend unfused, or --device virtual"});
}

TEST_F(BadInput, AnOffloadedOptimizerThatMegatronDoesNotHave) {
  expect_flags_refused({"--optimizer-cpu-offload"},
                       {"only its distributed optimizer", "--use-distributed-optimizer"});
  expect_flags_refused({"--optimizer-cpu-offload",
                        "--use-distributed-optimizer",
                        "--optimizer-offload-fraction",
                        "-0.5"},
                       {"not in [0, 1]", "--optimizer-offload-fraction = -0.5"});
  expect_flags_refused({"--no-pin-cpu-grads"}, {"optimizer offload", "--optimizer-cpu-offload"});
  expect_flags_refused({"--optimizer-cpu-ofload"}, {"did you mean --optimizer-cpu-offload?"});
}

TEST_F(BadInput, SubcommandsThatAreNotThereAreUnknown) {
  for (const std::string name : {"tune", "estimat"}) {
    const ProgramResult result = run({name, "plan.json"});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.error, StartsWith("error: unknown subcommand\n  " + name + "\n  help: "));
  }
  EXPECT_THAT(run({"estimat"}).error, HasSubstr("did you mean estimate?"));
  EXPECT_EQ(run({}).exit_code, 2);
}

TEST_F(BadInput, VerifyOfInterleavedStagesIsRefused) {
  const std::string plan = path("plan.json");
  estimator::write_file_whole(plan, R"({"model": "gpt2",
    "cluster": {"gpu": "a100", "nodes": 1, "gpus_per_node": 2},
    "parallelism": {"pipeline": 2, "virtual_stages": 2},
    "training": {"micro_batch_size": 1, "global_batch_size": 8}})");
  const ProgramResult result = run({"verify", plan});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("verify does not compare interleaved stages yet"));
  EXPECT_THAT(result.error, HasSubstr("virtual_stages = 2"));
}

TEST_F(BadInput, VerifyOfEightBitsIsRefused) {
  const std::string plan = path("plan.json");
  estimator::write_file_whole(plan, R"({"model": "gpt2",
    "cluster": {"gpu": "h100", "nodes": 1, "gpus_per_node": 2}, "parallelism": {"tensor": 2},
    "training": {"micro_batch_size": 1, "global_batch_size": 8, "fp8_format": "hybrid"}})");
  const ProgramResult result = run({"verify", plan});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("verify does not compare products in 8 bits"));
}

TEST_F(BadInput, DegreesThatDoNotMultiplyToTheWorld) {
  expect_flags_refused({"--tp", "3"}, {"do not multiply to the world", "tensor 3", "world 8"});
  expect_flags_refused({"--tp", "2", "--dp", "2"}, {"do not multiply", "4 ranks, world 8"});
}

TEST_F(BadInput, WhatDoesNotDivide) {
  expect_flags_refused({"--pp", "8", "--num-layers", "30"},
                       {"--pp = 8", "num_layers = 30", "help: use"});
  expect_flags_refused({"--num-attention-heads", "36", "--num-query-groups", "36"},
                       {"heads do not divide the hidden size", "--kv-channels"});
  expect_flags_refused({"--tp",
                        "8",
                        "--kv-channels",
                        "128",
                        "--num-attention-heads",
                        "36",
                        "--num-query-groups",
                        "36"},
                       {"attention heads", "--num-attention-heads = 36", "--tp = 8"});
  expect_flags_refused({"--tp",
                        "8",
                        "--vocab-size",
                        "1001",
                        "--make-vocab-size-divisible-by",
                        "1",
                        "--framework",
                        "plain",
                        "--set",
                        "training.make_vocab_size_divisible_by=1",
                        "--kv-channels",
                        "127"},
                       {"--kv-channels = 127"});
  expect_flags_refused({"--gbs", "12"},
                       {"global batch", "--gbs = 12", "use a global batch of 8 or 16"});
}

TEST_F(BadInput, NumbersThatAreNone) {
  for (const std::string text : {"8x", "nan", "1e3.5", "", "inf", "1.5"}) {
    expect_flags_refused({"--tp", text}, {"--tp = \"" + text + "\""});
    expect_flags_refused({"--world-size", text.empty() ? "x" : text}, {"--world-size = "});
  }
  expect_plan_refused(R"({"model": "gpt2", "parallelism": {"tensor": "2"}})",
                      {"plan.json: parallelism.tensor = \"2\""});
  expect_plan_refused(R"({"model": "gpt2", "parallelism": {"tensor": NaN}})",
                      {"not valid JSON", "line 1"});
}

TEST_F(BadInput, NumbersThatAreNegativeOrHuge) {
  expect_flags_refused({"--tp", "-3"}, {"out of range", "--tp = -3"});
  expect_flags_refused({"--gbs", "0"}, {"out of range", "--gbs = 0"});
  expect_flags_refused({"--nodes", "9223372036854775807"}, {"--nodes = 9223372036854775807"});
  expect_flags_refused({"--seq", "9000000000000000"}, {"out of range", "--seq = 9000000000000000"});
  expect_flags_refused({"--hidden-size", "99999999999999999999"}, {"--hidden-size"});
  expect_plan_refused(R"({"model": "gpt2", "cluster": {"nodes": 1e300}})",
                      {"cluster.nodes = 1e+300"});
}

TEST_F(BadInput, WorldsWithoutARankOrWithTooMany) {
  for (const std::string size : {"0", "-8", "5000000", "9223372036854775807"}) {
    expect_flags_refused({"--world-size", size}, {"out of range", "--world-size = " + size});
  }
  expect_refused({"run", "--model", "gpt2", "--gpu", "h100", "--gbs", "8", "--gpus", "0"},
                 {"out of range", "--gpus = 0"});
  environment_["WORLD_SIZE"] = "0";
  expect_flags_refused({}, {"out of range", "WORLD_SIZE = 0", "from 1 to 1,000,000"});
}

TEST_F(BadInput, RanksThatAreNotInTheWorldNameBothNumbers) {
  environment_["WORLD_SIZE"] = "8";
  environment_["RANK"] = "8";
  expect_flags_refused({}, {"RANK = 8", "world size 8 (from WORLD_SIZE)", "from 0 to 7"});
  expect_flags_refused({"--rank", "-1"}, {"--rank = -1", "world size 8"});
  environment_["RANK"] = "first";
  expect_flags_refused({}, {"RANK = \"first\""});
}

TEST_F(BadInput, AWorldSizeThatIsNotThePlans) {
  environment_["WORLD_SIZE"] = "16";
  expect_flags_refused({}, {"WORLD_SIZE is not the plan's world", "WORLD_SIZE = 16", "= 8"});
  expect_flags_refused({"--world-size", "24"}, {"--world-size = 24", "= 8"});
  environment_["WORLD_SIZE"] = "many";
  expect_flags_refused({}, {"WORLD_SIZE = \"many\""});
}

TEST_F(BadInput, PlanFilesThatAreNone) {
  expect_plan_refused("", {"plan.json is empty"});
  expect_plan_refused(R"({"model": "gpt2")", {"plan.json is not valid JSON"});
  expect_plan_refused(std::string("\x7f"
                                  "ELF\0\1",
                                  6),
                      {"plan.json is not a text file"});
  expect_plan_refused(R"({"model": "gpt2", "model": "gpt2"})", {"stands twice", "model"});
  expect_plan_refused("[1, 2]", {"a plan is an object"});
  expect_refused({"run", path("none.json")}, {"cannot read", "none.json", "No such file"});
  expect_refused({"run", path("")}, {"cannot read", "it is a folder"});
}

TEST_F(BadInput, EveryProblemOfAPlanIsToldAtOnce) {
  expect_plan_refused(
      R"({"model": "gpt5", "cluster": {"gpus": "h100"}, "training": {"dtype": "int8"}})",
      {"model = \"gpt5\"", "cluster.gpus", "training.dtype = \"int8\""});
}

TEST_F(BadInput, PlacesThatCannotBeWrittenAreFoundBeforeRanksAreRun) {
  environment_["FAKE_MARKER"] = path("was_run");
  for (const std::string& place :
       {path("none/profile.json"), path("tmp"), std::string("/dev/full")}) {
    const ProgramResult result = run(small_plan({"run"}, {"--output", place}));
    EXPECT_EQ(result.exit_code, 2) << place;
    EXPECT_THAT(result.error, StartsWith("error: cannot write " + place));
    EXPECT_FALSE(std::filesystem::exists(path("was_run")));
  }
  const ProgramResult result =
      run(small_plan({"estimate"}, {"--keep-profiles", write("file", "") + "/folder"}));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("--keep-profiles"));
  EXPECT_FALSE(std::filesystem::exists(path("was_run")));
}

TEST_F(BadInput, AFlagGivenTwiceOrWithoutItsValue) {
  expect_flags_refused({"--tp", "2", "--tp", "4"},
                       {"a flag is given too often, or without its value",
                        "--tensor-model-parallel-size: At Most 1 required but received 2",
                        "help: see onerank run --help"});
  const ProgramResult result = run({"check", "--tp"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("\n  --tensor-model-parallel-size"));
  EXPECT_THAT(result.error, HasSubstr("see onerank check --help"));
}

TEST_F(BadInput, ASwitchWithAValue) {
  const ProgramResult json = run({"check", "--json=x"});
  EXPECT_THAT(json.error, StartsWith("error: a flag that takes no value has one\n  "));
  const ProgramResult blank = run(small_plan({"check"}, {"--sequence-parallel", "true"}));
  EXPECT_THAT(blank.error, HasSubstr("--switch=true"));
}

TEST_F(BadInput, AnEmptyArgumentIsNamed) {
  EXPECT_THAT(run({""}).error,
              StartsWith("error: unknown subcommand\n  it is an empty argument\n"));
}

TEST_F(BadInput, AVariableOfTheShellThatIsNotSet) {
  for (const char* flag : {"--rank", "--world-size", "--jobs", "--depth", "--peak-snapshot"}) {
    expect_flags_refused({flag, ""}, {"an argument is empty", flag, "may not be set"});
    expect_flags_refused({std::string(flag) + "=", "1"}, {"an argument is empty", flag});
  }
  EXPECT_THAT(run(small_plan({"check"}, {""})).error, HasSubstr("an argument is empty\n  --plan"));
  EXPECT_THAT(run({"comm", "all_reduce", "--gpu", "h100", "--measured", ""}).error,
              HasSubstr("an argument is empty\n  --measured"));
  EXPECT_EQ(run(small_plan({"check"}, {"--allocator", ""})).exit_code, 0) << "PyTorch's default";
}

TEST_F(BadInput, WordsOfTheFieldThatAreNotModelledAreRefusedByName) {
  expect_flags_refused({"--fp8"}, {"8 bits", "--fp8-format hybrid", "--bf16"});
  expect_flags_refused({"--use-dora"}, {"adapters", "onerank exec"});
  expect_flags_refused({"--lora-alpha", "32"}, {"neither the memory nor the time"});
  expect_flags_refused({"--lr", "1e-4"}, {"neither the memory nor the time", "leave it out"});
  expect_flags_refused({"--precision", "bf16"}, {"give --bf16"});
  expect_flags_refused({"--gpu", "mi300x"}, {"unknown GPU", "AMD's GPUs are not played"});
  expect_flags_refused({"--optimizer", "lion"}, {"no such optimizer", "onerank exec"});
}

TEST_F(BadInput, WhatIsMissingIsAskedFor) {
  const ProgramResult no_gpu = run({"run", "--model", "gpt2", "--nodes", "1"});
  EXPECT_THAT(no_gpu.error, HasSubstr("give --gpu h100, see `onerank list gpus`"));
  expect_plan_refused(R"({"model": {"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
      "max_position_embeddings": 128}, "cluster": {"gpu": "h100", "nodes": 1}})",
                      {"the model has no vocab_size", "give --vocab-size"});
}

TEST_F(BadInput, FlagsAreNamedAsTheyWereTyped) {
  expect_flags_refused({"--tensor-model-parallel-size", "3"}, {"--tensor-model-parallel-size = 3"});
  expect_flags_refused({"--tensor_model_parallel_size=3"}, {"--tensor-model-parallel-size = 3"});
  expect_flags_refused({"--seq-length=8q"}, {"--seq-length = \"8q\""});
  expect_flags_refused({"--model", "mixtral-8x7b", "--fsdp", "--framework", "plain"},
                       {": --fsdp\n"});
}

TEST_F(BadInput, ANetworkInsideAMachine) {
  expect_flags_refused(
      {"--intra-link", "tcp-100g"},
      {"a network link cannot be the link inside a machine", "--intra-link = \"tcp-100g\""});
}

TEST_F(BadInput, AGpuWithoutRoomForTheContext) {
  const ProgramResult result = run({"exec", "--gpu", "h100", "--memory", "0.5", "--", "true"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("CUDA's context and libraries alone take 0.67 GiB"));
  EXPECT_THAT(result.error, HasSubstr("--memory 0.5"));
}

TEST_F(BadInput, KeysThatAreNestedWithoutEnd) {
  std::string key;
  for (int i = 0; i < 40'000; ++i) key += "a.";
  expect_flags_refused({"--set", key + "b=1"}, {"nested too deeply", "--set: 40001 keys"});
}

TEST_F(BadInput, TextThatIsNotUtf8) {
  expect_flags_refused({"--set", "name=\xff"}, {"an argument is not UTF-8", "name=\\xff"});
  environment_["CUBLAS_WORKSPACE_CONFIG"] = "\xff";
  expect_flags_refused({}, {"the variable CUBLAS_WORKSPACE_CONFIG is not UTF-8"});
}

TEST_F(BadInput, OfAVariableIsToldWithItsName) {
  environment_["CUBLAS_WORKSPACE_CONFIG"] = "x";
  environment_["PYTORCH_CUDA_ALLOC_CONF"] = "y";
  expect_flags_refused(
      {}, {"\n  CUBLAS_WORKSPACE_CONFIG = \"x\"\n", "\n  PYTORCH_CUDA_ALLOC_CONF = y\n"});
}

TEST_F(BadInput, NothingThatATerminalObeysIsPrinted) {
  const ProgramResult key = run({"run", write("plan.yaml", "\"\\e]0;pwn\\a\": 1\nmodel: gpt2\n")});
  EXPECT_THAT(key.error, HasSubstr("\\u001b]0;pwn\\u0007"));
  const ProgramResult name =
      run(small_plan({"estimate", "--no-advice"}, {"--set", "name=\x1b]0;pwn\x07\xc2\x9b"}));
  EXPECT_EQ(name.exit_code, 0) << name.error;
  EXPECT_THAT(name.output, HasSubstr("\\u001b]0;pwn\\u0007\\u009b: "));
  EXPECT_EQ((name.output + name.error).find('\x1b'), std::string::npos);
}

TEST_F(BadInput, NamesThatAreTooLongAreFoundBeforeRanksAreRun) {
  environment_["FAKE_MARKER"] = path("was_run");
  const std::string name(300, 'x');
  for (const char* flag : {"--output", "--keep-profiles", "--trace", "--peak-snapshot"}) {
    const ProgramResult result = run(small_plan({"estimate"}, {flag, path(name)}));
    EXPECT_EQ(result.exit_code, 2) << flag;
    EXPECT_THAT(result.error, HasSubstr("File name too long")) << flag;
  }
  EXPECT_FALSE(std::filesystem::exists(path("was_run")));
  const std::string longest(255, 'y');
  EXPECT_EQ(run(small_plan({"run"}, {"--output", path(longest)})).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(path(longest)));
}

}  // namespace
}  // namespace sim
