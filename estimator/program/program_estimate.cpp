#include "estimator/program/program_estimate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "estimator/base/contains.h"
#include "estimator/base/units.h"
#include "estimator/cluster/memory_verdict.h"
#include "estimator/cluster/training_estimate.h"
#include "estimator/communication/fabric.h"
#include "estimator/hardware/hardware.h"
#include "estimator/memory/context_memory.h"
#include "estimator/profile/own_limit.h"
#include "estimator/program/program_tokens.h"

namespace estimator {
namespace {

std::string described(const RankProfile& profile) {
  return fmt::format("rank {}: {} on {} ranks of {}",
                     profile.rank,
                     profile.program ? fmt::format("{}", fmt::join(profile.program->command, " "))
                                     : "a plan's shard",
                     profile.world_size,
                     profile.device.gpu);
}

std::string run_text(const RankProfile& profile) {
  const auto& run = profile.program->run;
  return fmt::format(
      "rank {}: {}", profile.rank, run ? "of the run " + *run : "it was run by itself");
}

bool same_program(const RankProfile& a, const RankProfile& b) {
  return a.program && b.program && a.program->command == b.program->command &&
         a.world_size == b.world_size && a.device.gpu == b.device.gpu &&
         a.device.allocator == b.device.allocator;
}

/// A program may have been changed between two runs. Ranks that were run one by one, such as on
/// several machines, are of no run that could be compared.
void check_runs(const std::vector<RankProfile>& profiles) {
  const auto& run = profiles.front().program->run;
  for (const RankProfile& profile : profiles) {
    if (profile.program->run == run) continue;
    throw UserError(
        {.what = "the profiles are of several runs of the program, which may have changed between",
         .where = run_text(profiles.front()) + "\n  " + run_text(profile),
         .help = "remove the files of an earlier run, or run all of these ranks again: at once "
                 "(--ranks), or each by itself (--rank)"});
  }
}

void check_profiles(const std::vector<RankProfile>& profiles) {
  for (const RankProfile& profile : profiles) {
    if (same_program(profile, profiles.front())) continue;
    throw UserError({.what = "the profiles are not of one program, world, GPU and allocator",
                     .where = described(profiles.front()) + "\n  " + described(profile),
                     .help = "keep those of one run of `onerank exec` in a folder of their own"});
  }
  check_runs(profiles);
  if (find_gpu(profiles.front().device.gpu) == nullptr) {
    throw UserError({.what = "unknown GPU",
                     .where = described(profiles.front()),
                     .help = gpu_help(profiles.front().device.gpu)});
  }
}

void check_verdicts(const std::vector<RankProfile>& profiles) {
  std::vector<Problem> problems;
  for (const RankProfile& profile : profiles) {
    if (auto problem = lacks_verdict(profile)) problems.push_back(std::move(*problem));
  }
  if (!problems.empty()) throw UserError(std::move(problems), ExitCode::kMachineLacks);
}

/// The machines that the program was told it runs on.
ClusterConfig cluster_of(const RankProfile& profile) {
  return usual_cluster(
      *find_gpu(profile.device.gpu), profile.world_size, profile.program->gpus_per_node);
}

ProgramPlace place_of(const std::vector<RankProfile>& profiles,
                      const Calibration* calibration,
                      const ProgramRun& run) {
  const ClusterConfig cluster = cluster_of(profiles.front());
  return {.gpu = gpu_of(cluster),
          .fabric = fabric_of(cluster),
          .calibration = calibration,
          .gpu_deviation = run.gpu_deviation};
}

constexpr const char* kNoTokens =
    "no rank that was replayed shows its tokens: give --tokens-per-step, or --global-batch-size "
    "and --seq-length";

void set_tokens(const ProgramReplay& replayed,
                const std::optional<int64_t>& said,
                ProgramThroughput& throughput) {
  throughput.tokens_per_step = said;
  if (said) return;
  std::vector<const RankProfile*> ranks;
  for (const ReplayRank& rank : replayed.ranks) ranks.push_back(rank.profile);
  const auto found = found_tokens(ranks);
  if (found) throughput.tokens_per_step = found->per_step();
  throughput.tokens_source = Source::kComputed;
  throughput.tokens_note = found ? found->how : kNoTokens;
}

ProgramThroughput throughput_of(const ProgramReplay& replayed,
                                const ProgramRun& run,
                                const std::optional<int64_t>& said_tokens,
                                double iteration_seconds) {
  ProgramThroughput throughput;
  set_tokens(replayed, said_tokens, throughput);
  if (!(iteration_seconds > 0)) return throughput;
  if (throughput.tokens_per_step) {
    const RankProfile& first = *replayed.ranks.front().profile;
    const auto world = static_cast<double>(said_tokens ? first.world_size : ranks_together(first));
    const double rate = static_cast<double>(*throughput.tokens_per_step) / iteration_seconds;
    throughput.tokens_per_second = rate;
    throughput.tokens_per_second_per_gpu = rate / world;
  }
  if (run.global_batch_size) {
    throughput.samples_per_second = static_cast<double>(*run.global_batch_size) / iteration_seconds;
  }
  return throughput;
}

/// What a rank would have needed that ran out is not known.
std::string reason_of(const Verdict& verdict, const std::vector<RankProfile>& profiles) {
  for (const RankProfile& profile : profiles) {
    if (profile.rank == verdict.worst_rank) return ran_out(profile).value_or(verdict.reason);
  }
  return verdict.reason;
}

constexpr const char* kNoStep =
    "run a program that takes at least one step of an optimizer of torch.optim. If this program "
    "should have, it may wait for flags that an absent root broadcasts: run the first rank of its "
    "group (--rank 0). Of a program that only infers, the peaks are reported without a verdict";
constexpr const char* kNoBackward =
    "see whether the model and its inputs are on that device, and whether backward() is called. Of "
    "a program that trains on the CPU, or only infers, the peaks are reported without a verdict";
constexpr const char* kNotRecorded = "leave out --no-recording";
constexpr const char* kNothingAllocated =
    "see whether the program moves its model to the device cuda, through PyTorch's own allocator: "
    "without PYTORCH_NO_CUDA_MEMORY_CACHING, backend:cudaMallocAsync, or a pluggable one";
constexpr const char* kUnknownGpu = "run it on one of `onerank list gpus`";
constexpr const char* kOtherDevice =
    "have the process use one device, such as by torch.cuda.set_device(LOCAL_RANK) before all else";

/// The device with more reserved than the followed one, if there is one.
const OtherDevice* fuller_device(const RankProfile& profile) {
  for (const OtherDevice& device : profile.program->other_devices) {
    if (device.reserved_peak_bytes > profile.peak.reserved_bytes) return &device;
  }
  return nullptr;
}

/// The virtual GPU sees what is asked for by calls of CUDA. NVIDIA's libraries are stubs there.
std::string memory_not_modelled(const DeviceRecord& device) {
  return fmt::format(
      "memory that {} outside PyTorch's allocator, other than the context's, cuBLAS's and NCCL's",
      device.kind == DeviceKind::kVirtual ? "NVIDIA's libraries themselves take"
                                          : "libraries take");
}

constexpr const char* kRunApart =
    "the ranks were run one by one: the program was not changed between these runs";

/// On the followed device.
bool ran_backward(const ProgramRecord& program) {
  return contains(program.backward_devices, program.device_index);
}

/// The MFU of a program is over the 16-bit peak, whatever its kernels compute in.
double fastest_over_bf16(const Gpu& gpu) {
  const PeakFlops& peak = gpu.peak_flops_per_second;
  return peak.bf16 ? std::max({*peak.bf16, peak.fp8.value_or(0), peak.fp4.value_or(0)}) / *peak.bf16
                   : 1;
}

}  // namespace

std::optional<std::string> ran_out(const RankProfile& profile) {
  if (!profile.out_of_memory || profile.limit_lifted) return std::nullopt;
  return fmt::format("rank {} ran out of {} in {}: {}",
                     profile.rank,
                     reached_own_limit(*profile.out_of_memory)
                         ? "the memory that the program allows itself"
                         : format_gib(profile.device.total_bytes),
                     profile.out_of_memory->phase,
                     profile.out_of_memory->message);
}

int64_t program_outside_bytes(const Gpu& gpu) {
  return context_memory(gpu, MemoryConfig().cuda_module_loading).value_bytes +
         library_memory(gpu).value_bytes;
}

std::string alone_text(const RankProfile& profile) {
  return fmt::format(
      "the program joined no process group: each of the {} ranks trains alone, and step time, "
      "tokens and training are those of one",
      profile.world_size);
}

std::optional<Problem> lacks_verdict(const RankProfile& profile) {
  if (!profile.program || profile.out_of_memory) return std::nullopt;
  const ProgramRecord& program = *profile.program;
  const auto problem = [&](const std::string& why, const char* help) {
    return Problem{.what = fmt::format("no verdict on rank {}: {}", profile.rank, why),
                   .where = fmt::format("{}", fmt::join(program.command, " ")),
                   .help = help};
  };
  if (!program.recorded) return problem("nothing was recorded", kNotRecorded);
  // Whatever more it would have done, this was too much.
  if (profile.peak.reserved_bytes > profile.device.total_bytes) return std::nullopt;
  if (profile.peak.allocated_bytes == 0) return problem("it allocated nothing", kNothingAllocated);
  if (const OtherDevice* other = fuller_device(profile)) {
    return problem(fmt::format("it used cuda:{} first ({}), and cuda:{} more ({})",
                               program.device_index,
                               format_gib(profile.peak.reserved_bytes),
                               other->index,
                               format_gib(other->reserved_peak_bytes)),
                   kOtherDevice);
  }
  if (program.optimizer_steps == 0) return problem("no optimizer step was seen", kNoStep);
  if (!ran_backward(program)) {
    return problem(fmt::format("no backward ran on cuda:{}", program.device_index), kNoBackward);
  }
  if (find_gpu(profile.device.gpu) == nullptr) {
    return problem(
        fmt::format("what {} holds outside PyTorch's allocator is not known", profile.device.name),
        kUnknownGpu);
  }
  return std::nullopt;
}

ProgramEstimate estimate_program_memory(const std::vector<RankProfile>& profiles) {
  check_profiles(profiles);
  check_verdicts(profiles);
  const RankProfile& first = profiles.front();
  const ClusterConfig cluster = cluster_of(first);
  Gpu gpu = gpu_of(cluster);
  gpu.memory_bytes = first.device.total_bytes;  // a real one may be a part of it
  const Fabric fabric = fabric_of(cluster);
  ProgramEstimate estimate{
      .tool = first.tool, .command = first.program->command, .world_size = first.world_size};
  for (const RankProfile& profile : profiles) {
    RankClassEstimate row = program_memory(profile, gpu, fabric);
    row.limit_lifted = ran_out(profile).has_value();
    estimate.ranks.push_back(std::move(row));
  }
  estimate.verdict = memory_verdict(0, gpu, estimate.ranks);
  estimate.verdict.reason = reason_of(estimate.verdict, profiles);
  estimate.assumptions = {
      fmt::format("the {} ranks that were run stand for all {}", profiles.size(), first.world_size),
      fmt::format(
          "{} and {} link the GPUs", cluster.intra_link.value(), cluster.inter_link.value())};
  if (profiles.size() > 1 && !first.program->run) estimate.assumptions.emplace_back(kRunApart);
  if (trains_alone(first)) estimate.assumptions.push_back(alone_text(first));
  estimate.not_modelled = {memory_not_modelled(first.device)};
  return estimate;
}

ProgramEstimate estimate_program(const std::vector<RankProfile>& profiles,
                                 const Calibration* calibration,
                                 const ProgramRun& run) {
  const auto said_tokens = run.said_tokens();
  ProgramEstimate estimate = estimate_program_memory(profiles);
  if (const auto reason = lacks_time(profiles)) {
    estimate.not_modelled.insert(estimate.not_modelled.begin(), "step time: " + *reason);
    return estimate;
  }
  const ProgramReplay replayed(profiles, place_of(profiles, calibration, run));
  estimate.time = program_time(replayed);
  double seconds = estimate.time->iteration_seconds;
  if (run.measured_step_seconds) {
    estimate.measured_step = measured_step(*run.measured_step_seconds, seconds);
    seconds = *run.measured_step_seconds;
    estimate.time->hfu /= estimate.measured_step->factor;
    estimate.time->mfu /= estimate.measured_step->factor;
    require_below_peak(
        *estimate.measured_step, estimate.time->mfu, fastest_over_bf16(replayed.rates.gpu()));
  }
  estimate.throughput = throughput_of(replayed, run, said_tokens, seconds);
  estimate.training = training_estimate({.world_size = ranks_together(profiles.front()),
                                         .tokens_per_step = estimate.throughput->tokens_per_step,
                                         .steps = run.steps,
                                         .tokens = run.tokens,
                                         .reliability = run.reliability,
                                         .usd_per_gpu_hour = run.usd_per_gpu_hour,
                                         .said_by = "the command line"},
                                        replayed.rates.gpu(),
                                        seconds);
  return estimate;
}

ProgramReplay replay_program(const std::vector<RankProfile>& profiles,
                             const Calibration* calibration,
                             const ProgramRun& run) {
  check_profiles(profiles);
  if (const auto reason = lacks_time(profiles)) {
    throw UserError({.what = "the program has no step time, and so nothing that is made of it",
                     .where = *reason,
                     .help = "run those ranks, or ask for memory alone"});
  }
  return ProgramReplay(profiles, place_of(profiles, calibration, run));
}

}  // namespace estimator
