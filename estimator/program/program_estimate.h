// The memory and step time of a cluster that runs a program without a plan, from profiles of some
// of its ranks (`onerank exec`).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/base/document_head.h"
#include "estimator/base/errors.h"
#include "estimator/cluster/cluster_estimate.h"
#include "estimator/hardware/hardware.h"
#include "estimator/profile/rank_profile.h"
#include "estimator/program/program_run.h"
#include "estimator/program/program_time.h"

namespace estimator {

struct ProgramThroughput {
  std::optional<int64_t> tokens_per_step;
  Source tokens_source = Source::kGiven;
  std::string tokens_note;  ///< how they were found, or the way to say them
  std::optional<double> tokens_per_second;
  std::optional<double> tokens_per_second_per_gpu;
  std::optional<double> samples_per_second;
};
template <class Visitor>
void visit_fields(Visitor& visit, ProgramThroughput& throughput) {
  visit("tokens_per_step", throughput.tokens_per_step, "of all ranks, said or found");
  visit("tokens_source", throughput.tokens_source, "given, or computed from the trace");
  visit("tokens_note", throughput.tokens_note, "how they were found, or why they are not known");
  visit("tokens_per_second", throughput.tokens_per_second, "of the cluster");
  visit("tokens_per_second_per_gpu", throughput.tokens_per_second_per_gpu, "of one GPU");
  visit("samples_per_second", throughput.samples_per_second, "where the batch is said");
}

struct ProgramEstimate {
  DocumentHead head{kEstimateSchemaVersion, "program_estimate"};
  ToolVersion tool;
  std::vector<std::string> command;
  int64_t world_size = 1;
  Verdict verdict;
  std::vector<RankClassEstimate> ranks;
  std::optional<ProgramTime> time;  ///< empty if the ranks that were run have none
  std::optional<MeasuredStep> measured_step;
  std::optional<ProgramThroughput> throughput;
  std::optional<TrainingEstimate> training;
  std::vector<std::string> assumptions;
  std::vector<std::string> not_modelled;
};
template <class Visitor>
void visit_fields(Visitor& visit, ProgramEstimate& estimate) {
  visit_head(visit, estimate.head);
  visit("tool", estimate.tool, "who made the profiles");
  visit("command", estimate.command, "the program and its arguments");
  visit("world_size", estimate.world_size, "of the simulated world");
  visit("verdict", estimate.verdict, "whether the ranks that were run fit");
  visit("ranks", estimate.ranks, "each rank that was run");
  visit("time", estimate.time, "of one iteration");
  visit("measured_step", estimate.measured_step, "where the user gives one");
  visit("throughput", estimate.throughput, "of the cluster, where the step time is known");
  visit("training", estimate.training, "of the whole training, where its length is said");
  visit("assumptions", estimate.assumptions, "what was assumed");
  visit("not_modelled", estimate.not_modelled, "what is left out");
}

/// Bytes of a rank's GPU that are in use before PyTorch's allocator takes any: the CUDA context and
/// CUDA's libraries, as estimate_program() counts them. NCCL's buffers count with the
/// communicators.
int64_t program_outside_bytes(const Gpu& gpu);

/// Why there is no verdict for the program's rank, and what to do about it: it was not followed,
/// stepped no optimizer, ran no backward on the device, allocated nothing, had most of its memory
/// on a device that was not followed, or ran on a GPU that is not in the database. Empty if there
/// is a verdict; a rank that ran out of memory always has one.
std::optional<Problem> lacks_verdict(const RankProfile& profile);

/// If the rank ran out of memory within the limit, says where: "rank 3 ran out of 79.19 GiB in
/// build_model: 1.00 GiB were asked for, 0.40 GiB were free". Else empty.
std::optional<std::string> ran_out(const RankProfile& profile);

/// What is to be said of a program whose rank trains alone (program_tokens.h).
std::string alone_text(const RankProfile& profile);

/// Throws UserError when the profiles are not all of the same program, world and GPU, or neither of
/// one run nor all of ranks that were run by themselves; or when the GPU is not in the database;
/// and (this machine lacks something) when a profile has no verdict. Throws it too for what
/// contradicts itself in `run`, and as training_estimate() does. `calibration` is of their GPU, or
/// null.
ProgramEstimate estimate_program(const std::vector<RankProfile>& profiles,
                                 const Calibration* calibration = nullptr,
                                 const ProgramRun& run = {});

/// The same without the step time, for who needs only the verdict: no trace is replayed.
ProgramEstimate estimate_program_memory(const std::vector<RankProfile>& profiles);

/// The replay of the program's ranks, for its trace, timeline and roofline. Throws UserError as
/// estimate_program() does, and when the ranks have no step time. The profiles and the calibration
/// must outlive it.
ProgramReplay replay_program(const std::vector<RankProfile>& profiles,
                             const Calibration* calibration = nullptr,
                             const ProgramRun& run = {});

}  // namespace estimator
