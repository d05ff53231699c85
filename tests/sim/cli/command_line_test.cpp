// What people type that is no flag or subcommand of ours, and what they are told.
#include <gmock/gmock.h>

#include <array>
#include <filesystem>

#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class CommandLine : public OnerankProgram {
 protected:
  std::string error_of(const std::vector<std::string>& arguments) {
    const ProgramResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << testing::PrintToString(arguments);
    return result.error;
  }
};

TEST_F(CommandLine, AFileThatIsReadIsNotWrittenOver) {
  const std::string plan = write("plan.json", "{}");
  const std::string same = path("./plan.json");
  const std::vector<std::vector<std::string>> kCommands = {
      {"estimate", plan, "--output", same},
      {"import", plan, "--output", same},
      {"memory", plan, "--html", same},
      {"diff", plan, "other.json", "--html", same},
      {"check", "--model", plan, "--plan", "other.json", "--peak-snapshot", same},
      {"estimate", "--calibration", plan, "--output", same},
      {"exec", "--estimate", same, "--", "python", plan}};
  for (const std::vector<std::string>& command : kCommands) {
    EXPECT_THAT(error_of(command),
                AllOf(HasSubstr("one file would be written over another"), HasSubstr(plan)));
    EXPECT_EQ(read("plan.json"), "{}");
  }
}

TEST_F(CommandLine, TwoOutputsHaveTwoNames) {
  const std::string file = path("x.json");
  EXPECT_THAT(error_of(small_plan({"run"}, {"--output", file, "--peak-snapshot", file})),
              AllOf(HasSubstr("--peak-snapshot " + file), HasSubstr("--output " + file)));
  EXPECT_THAT(error_of(small_plan({"estimate"}, {"--html", file, "--trace", file})),
              HasSubstr("one file would be written over another"));
  std::filesystem::create_symlink(file, path("link.json"));
  write("x.json", "");
  EXPECT_THAT(error_of(small_plan({"run"}, {"--output", path("link.json"), "--html", file})),
              HasSubstr("one file would be written over another"));
  EXPECT_THAT(
      error_of({"estimate", "--profiles", path("p"), "--output", path("p/rank-00000.json")}),
      HasSubstr("one file would be written over another"));
}

TEST_F(CommandLine, WordsOfOtherProgramsNameTheFlagThatIsMeant) {
  constexpr std::array<std::array<const char*, 2>, 10> kWords = {
      {{"--zero", "--zero-stage"},
       {"--seqlen", "--seq-length"},
       {"--batch-size", "--micro-batch-size"},
       {"--ac", "--recompute-granularity"},
       {"--activation-checkpointing", "--recompute-granularity"},
       {"--flash-attn", "--attention-backend flash"},
       {"--nnodes", "--nodes"},
       {"--nproc_per_node", "--gpus-per-node"},
       {"--deepspeed", "write the file's name without a flag"},
       {"--fsdp", "a switch has none"}}};
  for (const auto& [typed, told] : kWords) {
    EXPECT_THAT(error_of(small_plan({"check"}, {typed, "3"})), HasSubstr(told)) << typed;
  }
}

TEST_F(CommandLine, TheFlagOfTheWorldHasTheNameThatWasTyped) {
  for (const char* flag : {"--gpus", "--num-gpus", "--world-size"}) {
    EXPECT_THAT(
        error_of({"check", "--model", "llama3-8b", "--gpu", "h100", "--nodes", "4", flag, "8"}),
        HasSubstr(std::string("error: ") + flag + " is not the plan's world"));
  }
}

TEST_F(CommandLine, WordsInPlaceOfASubcommandNameTheFlag) {
  EXPECT_THAT(error_of({"help"}), HasSubstr("onerank --help"));
  EXPECT_THAT(error_of({"version"}), HasSubstr("onerank --version"));
}

TEST_F(CommandLine, TheWorldsSizeMayHaveAnUnderscore) {
  EXPECT_EQ(run(small_plan({"check"}, {"--world_size", "8"})).exit_code, 0);
}

TEST_F(CommandLine, AdviceWithoutAWordIsAlwaysGiven) {
  const ProgramResult bare = run(small_plan({"estimate"}, {"--advice"}));
  EXPECT_EQ(bare.output, run(small_plan({"estimate"}, {"--advice", "always"})).output);
  EXPECT_THAT(run(small_plan({"estimate"})).output, HasSubstr("`--advice always` tries"));
}

TEST_F(CommandLine, MegatronsMethodsOfRecomputeWantFullRecompute) {
  const auto with = [](const std::string& kind, const std::string& method) {
    return small_plan({"check"}, {"--recompute-granularity", kind, "--recompute-method", method});
  };
  EXPECT_EQ(run(with("full", "uniform")).exit_code, 0);
  EXPECT_EQ(run(with("full", "block")).exit_code, 0);
  EXPECT_THAT(error_of(with("selective", "block")), HasSubstr("--recompute-granularity full"));
}

TEST_F(CommandLine, AStageOfZeroThatIsNotThereIsToldOnce) {
  EXPECT_THAT(error_of(small_plan({"check"}, {"--zero-stage", "4"})),
              AllOf(HasSubstr("no such ZeRO stage"), Not(HasSubstr("FSDP2 here"))));
}

TEST_F(CommandLine, SaysThatAFrameworkWasChosen) {
  const auto report = [&](const std::vector<std::string>& more) {
    return run(small_plan({"estimate"}, more)).output;
  };
  EXPECT_THAT(report({"--fsdp"}), HasSubstr("framework torchtitan (chosen for FSDP2)"));
  EXPECT_THAT(report({"--fsdp", "--framework", "plain"}), HasSubstr("framework plain,"));
  EXPECT_THAT(report({}), HasSubstr("framework megatron-lm,"));
}

TEST_F(CommandLine, AModelIsReadFromItsFile) {
  const std::string config = write("config.json",
                                   R"({"architectures": ["LlamaForCausalLM"],
      "model_type": "llama", "hidden_size": 256, "intermediate_size": 512,
      "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
      "vocab_size": 1024, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
      "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": false,
      "torch_dtype": "bfloat16"})");
  for (const std::string& model : {config, path("")}) {
    const ProgramResult result = run(small_plan({"check"}, {"--model", model}));
    EXPECT_EQ(result.exit_code, 0) << result.error;
  }
  const std::string job = write("train.sh",
                                "torchrun train.py --model_name_or_path a/b --bf16 "
                                "--per_device_train_batch_size 3\n");
  const std::string named_as_a_preset = path("gpt2");
  std::filesystem::create_directory(named_as_a_preset);
  std::filesystem::copy(config, named_as_a_preset);
  for (const std::string& model : {config, named_as_a_preset}) {
    EXPECT_THAT(run({"import", job, "--model", model}).output,
                AllOf(HasSubstr("\"micro_batch_size\": 3"), HasSubstr("\"ffn_hidden_size\": 512")));
  }
  const ProgramResult replaced =
      run(small_plan({"check", write("plan.json", R"({"model": "gpt2"})")}, {"--model", config}));
  EXPECT_EQ(replaced.exit_code, 0) << replaced.error;
  EXPECT_THAT(error_of(small_plan({"check"}, {"--model", "facebook/galactica-1.3b"})),
              HasSubstr("its config.json can be given as a file"));
}

TEST_F(CommandLine, ExecTellsHowAProgramAndAWorldAreGiven) {
  EXPECT_THAT(error_of({"exec", "--world-size", "2", "--rank", "3", "--", "true"}),
              HasSubstr("from 0 to 1"));
  EXPECT_THAT(error_of({"exec", "--gpus", "8", "--rank", "9", "--", "true"}),
              HasSubstr("from 0 to 7"));
  const std::string script = write("t.py", "");
  EXPECT_THAT(error_of({"exec", script}), HasSubstr("-- python " + script));
}

TEST_F(CommandLine, ExecLooksAtProfilesThatItWouldReplace) {
  std::filesystem::create_directories(path("out/rank-00001.json/x"));
  for (const char* ranks : {"auto", "0,1"}) {
    EXPECT_THAT(
        error_of(
            {"exec", "--ranks", ranks, "--world-size", "2", "--output", path("out"), "--", "true"}),
        AllOf(HasSubstr("rank-00001.json"), HasSubstr("it is a folder")));
  }
}

}  // namespace
}  // namespace sim
