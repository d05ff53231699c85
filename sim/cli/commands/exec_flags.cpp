#include "sim/cli/commands/exec_flags.h"

#include <CLI/CLI.hpp>

#include "estimator/base/errors.h"
#include "estimator/hardware/hardware.h"
#include "sim/cli/input/offered_words.h"
#include "sim/cli/input/rank_options.h"
#include "sim/cli/programs/exec_process.h"

namespace sim {
namespace {

/// Adds flags to one group of the help.
class FlagGroup {
 public:
  FlagGroup(CLI::App& app, const char* name) : app_(app), name_(name) {}

  CLI::Option* value(const char* flag, std::string& value, const char* help, const char* type) {
    return app_.add_option(flag, value, help)->type_name(type)->group(name_);
  }
  CLI::Option* values(const char* flag,
                      std::vector<std::string>& values,
                      const char* help,
                      const char* type) {
    return app_.add_option(flag, values, help)->type_name(type)->group(name_);
  }
  CLI::Option* choice(const char* flag, bool& is_given, const char* help) {
    return app_.add_flag(flag, is_given, help)->group(name_);
  }

 private:
  CLI::App& app_;
  const char* name_;
};

void add_world_flags(FlagGroup& group, ExecFlags& flags) {
  CLI::Option* gpu =
      group.value("--gpu", flags.gpu, "the GPU to simulate (see `onerank list gpus`)", "NAME");
  offer(gpu->capture_default_str(), estimator::gpu_names());
  group.value("--world-size,--gpus,--num-gpus",
              flags.world_size,
              "ranks of the world (or WORLD_SIZE; default 1)",
              "N");
  group.value("--rank", flags.rank, "the rank to run (or RANK; default 0)", "R");
  group.value(
      "--ranks",
      flags.ranks,
      "several ranks, side by side: 0,7,63; auto: those that differ, and that wait for each other",
      "R,R");
  group.value("--jobs",
              flags.jobs,
              "ranks that run at the same time (default: as many as processors and memory allow)",
              "N");
  group.value("--gpus-per-node", flags.gpus_per_node, "LOCAL_RANK is the rank modulo this", "N")
      ->capture_default_str();
}

void add_end_flags(FlagGroup& group, ExecFlags& flags) {
  group
      .value("--steps", flags.steps, "end the program after K optimizer steps (0: let it end)", "K")
      ->capture_default_str();
  group
      .value("--timeout",
             flags.timeout,
             "end the program after this many seconds (0: never)",
             "SECONDS")
      ->capture_default_str();
}

void add_device_flags(FlagGroup& group, ExecFlags& flags) {
  CLI::Option* events = group.value(
      "--events",
      flags.events,
      "when an event counts as done: once it is recorded (immediate), or when the host has "
      "waited for it (ordered)",
      "NAME");
  offer(events->capture_default_str(), {std::begin(kEventModes), std::end(kEventModes)});
  CLI::Option* device =
      group.value("--device",
                  flags.device,
                  "virtual, or cuda: this machine's GPU, where only NCCL is a stub",
                  "NAME");
  offer(device->capture_default_str(), {"virtual", "cuda"});
  CLI::Option* memory =
      group.value("--memory",
                  flags.memory,
                  "memory of each GPU, for a card, a slice or a partition that differs from --gpu",
                  "GIB");
  group
      .choice("--no-memory-limit",
              flags.no_memory_limit,
              "simulate a GPU with 16 TiB, to see how much memory a program needs that does not "
              "fit")
      ->excludes(memory);
}

/// For values that only kernels would have computed.
void add_assumption_flags(FlagGroup& group, ExecFlags& flags) {
  group.choice("--accept-invented-counts",
               flags.accept_invented_counts,
               "give zeros when the program reads counts that kernels would have computed, "
               "instead of ending it");
  group
      .values("--assume",
              flags.assumed,
              "assume a value that only a kernel would compute: loss, grad-norm or found-inf",
              "NAME=VALUE")
      ->expected(1)
      ->take_all();
  group.value(
      "--expert-balance",
      flags.expert_balance,
      "tokens of each expert: balanced, or imbalance:F (the first expert gets F times the mean)",
      "POLICY");
}

void add_execution_flags(CLI::App& app, ExecFlags& flags) {
  FlagGroup group(app, "Execution");
  add_world_flags(group, flags);
  add_end_flags(group, flags);
  add_device_flags(group, flags);
  add_assumption_flags(group, flags);
  add_memory_files_to(app, flags.memory_files);
  FlagGroup not_in_the_help(app, "");
  not_in_the_help.choice(
      "--no-recording",
      flags.no_recording,
      "run the program with the stubs only, without recording, to see what recording costs");
}

void add_output_flags(CLI::App& app, ExecFlags& flags) {
  FlagGroup group(app, "Output");
  group.value("--output", flags.output, "write the rank profiles rank-*.json there", "DIR");
  group.value("--trace", flags.trace, "write the step as a Chrome trace, for Perfetto", "FILE");
  flags.html.add_to(app);
  group.value("--estimate",
              flags.estimate,
              "write memory, time and cost as JSON, as `onerank estimate --profiles` prints it",
              "FILE");
  CLI::Option* json =
      group.choice("--json",
                   flags.json,
                   "print the profile as JSON; the program's output goes to standard error");
  group.choice("--verbose", flags.verbose, "list each value that was assumed")->excludes(json);
  group.choice("--timeline", flags.timeline, "draw the step: a line for each stream")
      ->excludes(json);
  group.choice("--roofline", flags.roofline, "print what bounds the step, as `onerank roofline`")
      ->excludes(json);
}

/// The first flag that asks for what the training takes and costs; "" if none was given.
std::string flag_beyond_profiles(const ExecFlags& flags) {
  const std::vector<std::string> of_programs = flags.program_flags.given();
  if (!of_programs.empty()) return of_programs.front();
  if (flags.measured_step.is_given()) return "--measured-step";
  return flags.plan_flags.given_beyond({});
}

}  // namespace

void add_exec_flags(CLI::App& app, ExecFlags& flags) {
  add_execution_flags(app, flags);
  add_output_flags(app, flags);
  flags.plan_flags.add_keys_to(app, keys_of_programs());
  flags.program_flags.add_to(app);
  flags.measured_step.add_to(app);
  flags.gate.add_to(app);
  app.add_option("PROGRAM",
                 flags.program,
                 "after `--`: the program and its arguments; one rank alone reads standard input, "
                 "unless it is a terminal")
      ->required()
      ->expected(-1);
}

void refuse_unprinted_answers(const ExecFlags& flags) {
  if (!flags.json || !flags.estimate.empty()) return;
  const std::string flag = flag_beyond_profiles(flags);
  if (flag.empty()) return;
  throw estimator::UserError(
      {.what = "the profiles, which --json prints, do not have the answer",
       .where = flag + " with --json",
       .help = "give --estimate FILE too, which has it, or leave out --json"});
}

}  // namespace sim
