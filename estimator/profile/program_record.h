// The part of a profile about a program that ran as one rank under `onerank exec`. Such a profile
// has no resolved plan, so this record says what a plan would say otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/option.h"
#include "estimator/plan/parallel_layout.h"

namespace estimator {

/// A kernel by its name, and how often the program launched it.
struct KernelRecord {
  std::string name;
  int64_t launches = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, KernelRecord& kernel) {
  visit("name", kernel.name, "the kernel, demangled");
  visit("launches", kernel.launches, {"in the whole run", kCount});
}

/// Calls of cuBLAS for matrix products of one shape. The shape is column-major, as cuBLAS has it:
/// PyTorch asks for the transposed product, so that m here is PyTorch's n.
struct GemmRecord {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t batch = 1;
  int64_t count = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, GemmRecord& gemm) {
  visit("m", gemm.m, {"rows, column-major", kCount});
  visit("n", gemm.n, {"columns, column-major", kCount});
  visit("k", gemm.k, {"length of the sums", kCount});
  visit("batch", gemm.batch, {"products of one call", kCount});
  visit("count", gemm.count, {"calls in the whole run", kCount});
}

/// Equal calls of one communicator, counted. `bytes` is defined as in CollectiveCall.
struct ProgramCollective {
  std::string kind;  ///< "all_reduce", ... as in CollectiveKind
  std::string dtype;
  int64_t bytes = 0;
  int64_t peer = -1;  ///< member index for send, recv and rooted calls, else -1
  int64_t count = 0;
  int64_t iteration_count = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, ProgramCollective& call) {
  visit("kind", call.kind, "which collective");
  visit("dtype", call.dtype, "element type");
  visit("bytes", call.bytes, {"size as nccl-tests counts it", kBytes});
  visit(
      "peer", call.peer, {"member index for send, recv and rooted calls, else -1", kMemberOrNone});
  visit("count", call.count, {"in the whole run", kCount});
  visit("iteration_count", call.iteration_count, {"in the recorded iteration", kCount});
}

/// An NCCL communicator that the program made, with the calls that it received.
struct CommunicatorRecord {
  std::string name;  ///< as the program's framework names the group, "" when it does not
  int64_t size = 1;
  int64_t rank = 0;  ///< of this process in it
  /// Global rank of the first member, and the distance to the next one; -1 when unknown.
  int64_t first_rank = -1;
  int64_t rank_stride = -1;
  std::vector<ProgramCollective> calls;
};
template <class Visitor>
void visit_fields(Visitor& visit, CommunicatorRecord& communicator) {
  visit("name", communicator.name, "of the group");
  visit("size", communicator.size, {"ranks in it", kGroupSize});
  visit("rank", communicator.rank, {"of this process in it", kCount});
  visit("first_rank",
        communicator.first_rank,
        {"global rank of its first member, or -1", kMemberOrNone});
  visit("rank_stride", communicator.rank_stride, {"to the next member, or -1", kMemberOrNone});
  visit("calls", communicator.calls, "what was asked of it");
}

/// Whether it is known which global ranks the members are.
inline bool is_placed(const CommunicatorRecord& communicator) {
  return communicator.first_rank >= 0 && communicator.rank_stride > 0;
}

/// Its global ranks; neighbours from rank 0 on when they are not known.
inline RankGroup group_of(const CommunicatorRecord& communicator) {
  const int64_t stride = is_placed(communicator) ? communicator.rank_stride : 1;
  return {.first = is_placed(communicator) ? communicator.first_rank : 0,
          .spans = {{.count = communicator.size, .stride = stride}},
          .place_is_known = is_placed(communicator)};
}

/// A value that the host read from the device although nothing had computed it. The answer was
/// zeros, or what the user had given, and the program may have taken a decision from it.
struct InventedRead {
  std::string reader;  ///< the operator that read, "" outside operators
  std::string phase;
  int64_t bytes = 0;  ///< of one read
  int64_t count = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, InventedRead& read) {
  visit("reader", read.reader, "the operator that read");
  visit("phase", read.phase, "when");
  visit("bytes", read.bytes, {"of one read", kBytes});
  visit("count", read.count, {"how often", kCount});
}

/// The name of what was assumed where a program checked what it had computed.
inline constexpr const char* kAssumedCheck = "check";

/// A value in place of one that only a kernel could compute: the user gave it, or it is that of a
/// check.
struct AssumedRecord {
  std::string name;
  std::string value;
  std::string operator_name;  ///< the operator whose result it replaced
  int64_t count = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, AssumedRecord& assumed) {
  visit("name", assumed.name, "loss, grad-norm, found-inf, expert-tokens or check");
  visit("value", assumed.value, "as it was given; of a check also its line");
  visit("operator", assumed.operator_name, "whose result it took the place of");
  visit("count", assumed.count, {"how often", kCount});
}

/// What the program was given in place of what ranks that were not run would have said: what this
/// rank holds itself, and at a barrier nothing.
struct AbsentAnswerRecord {
  std::string kind;   ///< as in CollectiveKind
  std::string group;  ///< its description
  int64_t members = 1;
  std::string line;  ///< "train.py:30 in main", "" outside Python
  std::string why;   ///< "14 of 16 ranks were not run"
  int64_t count = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, AbsentAnswerRecord& answer) {
  visit("kind", answer.kind, "the collective or message, as in CollectiveKind");
  visit("group", answer.group, "over which group");
  visit("members", answer.members, {"ranks in the group", kGroupSize});
  visit("line", answer.line, "of the program that called it");
  visit("why", answer.why, "who did not answer");
  visit("count", answer.count, {"how often", kCount});
}

/// A kernel for which the program chose one of several ways by the times that the device takes,
/// which are computed.
struct TunedRecord {
  std::string name;
  std::string choice;
  int64_t tried = 0;
  bool operator==(const TunedRecord&) const = default;
};
template <class Visitor>
void visit_fields(Visitor& visit, TunedRecord& tuned) {
  visit("name", tuned.name, "of the kernel or operator");
  visit("choice", tuned.choice, "what was chosen, as the tuner writes it");
  visit("tried", tuned.tried, {"of how many", kCount});
}

/// A further device that the program used; the profile's memory is that of device_index alone.
struct OtherDevice {
  int64_t index = 0;
  int64_t reserved_peak_bytes = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, OtherDevice& device) {
  visit("index", device.index, {"of the device", kCount});
  visit("reserved_peak_bytes",
        device.reserved_peak_bytes,
        {"largest, of PyTorch's allocator", kBytes});
}

// What the recorded iteration has that other iterations do not have, or lacks.
inline constexpr const char* kWithCompilation = "compilation";
inline constexpr const char* kWithGraphCapture = "graph_capture";
inline constexpr const char* kWithOtherSteps = "other_steps";
inline constexpr const char* kWithOtherCalls = "other_collectives";
inline constexpr const char* kWithMoreProducts = "more_products";
inline constexpr const char* kWithLessWork = "less_work";
inline constexpr const char* kWithoutGraph = "no_graph";
inline constexpr const char* kWithoutBackward = "no_backward";

struct ProgramRecord {
  std::vector<std::string> command;
  std::optional<std::string> run;  ///< empty for a rank that was run by itself
  bool recorded = true;
  bool joins_world = true;  ///< it joined a process group, or made a communicator
  int64_t gpus_per_node = 8;
  int64_t device_index = 0;
  std::vector<OtherDevice> other_devices;
  std::vector<int64_t> backward_devices;  ///< that gave memory to nodes of autograd
  std::vector<int64_t> product_devices;   ///< of the recorded iteration's products and attention
  int64_t outside_bytes = 0;
  int64_t other_libraries_bytes = 0;
  int64_t optimizer_steps = 0;
  int64_t caught_failures = 0;
  int64_t recorded_iteration = 0;
  std::vector<std::string> recorded_with;
  bool stopped_by_steps = false;
  std::string events = "immediate";
  std::vector<std::string> attention;
  std::vector<CommunicatorRecord> communicators;
  std::vector<KernelRecord> kernels;
  std::vector<GemmRecord> gemms;
  std::vector<InventedRead> invented_reads;
  std::vector<AssumedRecord> assumed;
  std::vector<AbsentAnswerRecord> absent_answers;
  bool has_timed_events = false;  ///< whose times it may have asked for
  std::vector<TunedRecord> tuned;
  std::vector<std::string> unanswered;
};
template <class Visitor>
void visit_fields(Visitor& visit, ProgramRecord& program) {
  visit("command", program.command, "the program and its arguments");
  visit("run",
        program.run,
        "an identifier that the ranks of one run of `onerank exec` share; a rank that was run by "
        "itself has none");
  visit(
      "recorded", program.recorded, "false if nothing was followed; then the peaks are not known");
  visit(
      "joins_world",
      program.joins_world,
      "false if it joined no process group and made no communicator: then each rank trains alone");
  visit("gpus_per_node", program.gpus_per_node, {"devices of the virtual machine", kGpusOfNode});
  visit("device_index", program.device_index, {"the device that the process used first", kCount});
  visit("other_devices", program.other_devices, "that the process used too");
  visit("backward_devices",
        program.backward_devices,
        {"devices on which a backward ran: those that gave it memory", kCount});
  visit("product_devices",
        program.product_devices,
        {"devices that multiplied matrices in the recorded iteration", kCount});
  visit("outside_bytes",
        program.outside_bytes,
        {"bytes of the virtual GPU that were not free, for CUDA's context and libraries", kBytes});
  visit("other_libraries_bytes",
        program.other_libraries_bytes,
        {"bytes beside these and PyTorch's allocator when most of the virtual GPU was in use: what "
         "other libraries took with calls of CUDA",
         kBytes});
  visit("optimizer_steps", program.optimizer_steps, {"iterations that ended in a step", kCount});
  visit("caught_failures",
        program.caught_failures,
        {"requests for memory that were refused, and after which the program took steps", kCount});
  visit("recorded_iteration",
        program.recorded_iteration,
        {"whose operators the profile has", kCount});
  visit("recorded_with",
        program.recorded_with,
        "what that iteration has beside what the program does in others: compilation, "
        "graph_capture, other_steps (of optimizers that step irregularly), other_collectives, "
        "more_products (than an iteration beside it: it evaluates, perhaps), less_work (than "
        "iterations behind it); no_graph: the program "
        "captured CUDA graphs, and none is launched in it");
  visit("stopped_by_steps", program.stopped_by_steps, "it was ended after --steps");
  visit("events",
        program.events,
        "when an event counts as done: immediate (once it is recorded) or ordered (when the host "
        "has waited for it); \"\" for a real GPU");
  visit("attention", program.attention, "attention operators that were taken");
  visit("communicators", program.communicators, "NCCL communicators");
  visit("kernels", program.kernels, "launches by kernel");
  visit("gemms", program.gemms, "matrix products by shape");
  visit("invented_reads", program.invented_reads, "reads of values that nothing had computed");
  visit("assumed", program.assumed, "values that the user gave");
  visit("absent_answers",
        program.absent_answers,
        "what was assumed of ranks that were not run, of values that the host knows");
  visit("has_timed_events",
        program.has_timed_events,
        "it recorded events of which it may ask how long the device took between them");
  visit("tuned", program.tuned, "what the program chose by computed times of the device");
  visit("unanswered",
        program.unanswered,
        "values that the program asked for and that cannot be invented");
}

}  // namespace estimator
