// The flags of `onerank exec`.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/commands/html_flag.h"
#include "sim/cli/input/cli_fwd.h"
#include "sim/cli/input/plan_flags.h"
#include "sim/cli/input/program_flags.h"
#include "sim/cli/input/verdict_gate.h"
#include "sim/tracking/memory_file_kinds.h"

namespace sim {

/// What was typed. exec_job() and ranks_to_exec() read it.
struct ExecFlags {
  std::string gpu = "h100-sxm";
  std::string world_size;
  std::string rank;
  std::string ranks;
  std::string jobs;
  std::string gpus_per_node = "8";
  std::string steps = "0";
  std::string timeout = "600";
  std::string events = "immediate";
  std::string device = "virtual";
  std::string memory;
  bool no_memory_limit = false;
  bool accept_invented_counts = false;
  std::vector<std::string> assumed;
  std::string expert_balance;
  bool no_recording = false;
  ForEachMemoryFile<std::string> memory_files;
  std::string output;
  std::string trace;
  HtmlFlag html;
  std::string estimate;
  bool timeline = false;
  bool roofline = false;
  bool json = false;
  bool verbose = false;
  PlanFlags plan_flags;
  ProgramFlags program_flags;
  MeasuredStepFlag measured_step;
  VerdictGate gate;
  std::vector<std::string> program;
};

/// Adds all of them, and the program, which follows `--`. `flags` must outlive the parsing.
void add_exec_flags(CLI::App& app, ExecFlags& flags);

/// Throws UserError for a flag whose answer is printed nowhere: --json prints the profiles, which
/// do not tell what the training takes and costs.
void refuse_unprinted_answers(const ExecFlags& flags);

}  // namespace sim
