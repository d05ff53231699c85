// The profile of one executed rank, as JSON (`rank-00000.json`). The rank process writes it and the
// estimator reads it. Profiles from a real GPU, from the virtual GPU and from files all have this
// type.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/document_head.h"
#include "estimator/base/json_value.h"
#include "estimator/base/option.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/collective_call.h"
#include "estimator/profile/memory_category.h"
#include "estimator/profile/program_record.h"
#include "estimator/profile/step_order.h"
#include "estimator/profile/trace.h"

namespace estimator {

inline constexpr int64_t kProfileSchemaVersion = 1;

enum class DeviceKind { kCuda, kVirtual, kCpu };
constexpr std::array<EnumName<DeviceKind>, 3> enum_names(DeviceKind) {
  return {
      {{DeviceKind::kCuda, "cuda"}, {DeviceKind::kVirtual, "virtual"}, {DeviceKind::kCpu, "cpu"}}};
}

/// The part of an iteration in which something happened. forward, recompute and backward happen for
/// each micro-batch; reduce_gradients and optimizer_step happen once in an iteration.
enum class Direction { kForward, kRecompute, kBackward, kReduceGradients, kOptimizerStep };
constexpr std::array<EnumName<Direction>, 5> enum_names(Direction) {
  return {{{Direction::kForward, "forward"},
           {Direction::kRecompute, "recompute"},
           {Direction::kBackward, "backward"},
           {Direction::kReduceGradients, "reduce_gradients"},
           {Direction::kOptimizerStep, "optimizer_step"}}};
}
constexpr bool is_per_micro_batch(Direction direction) {
  return direction == Direction::kForward || direction == Direction::kRecompute ||
         direction == Direction::kBackward;
}

struct ToolVersion {
  std::string name = "onerank";
  std::string version;
  std::string torch;
};
template <class Visitor>
void visit_fields(Visitor& visit, ToolVersion& tool) {
  visit("name", tool.name, "the tool");
  visit("version", tool.version, "its version");
  visit("torch", tool.torch, "the version of torch that ran the shard");
}

struct DeviceRecord {
  DeviceKind kind = DeviceKind::kVirtual;
  std::string gpu;          ///< id in the GPU database, "" when it is not there
  std::string name;         ///< as the device reports it
  int64_t total_bytes = 0;  ///< as the device reports it, before a limit was lifted
  std::string allocator;    ///< the value of PYTORCH_CUDA_ALLOC_CONF that was used
};
template <class Visitor>
void visit_fields(Visitor& visit, DeviceRecord& device) {
  visit("kind", device.kind, "cuda, virtual or cpu");
  visit("gpu", device.gpu, "id in the GPU database");
  visit("name", device.name, "as the device reports it");
  visit("total_bytes", device.total_bytes, {"memory as the device reports it", kBytes});
  visit("allocator", device.allocator, "PYTORCH_CUDA_ALLOC_CONF in force");
}

struct MemoryReading {
  int64_t allocated_bytes = 0;
  int64_t reserved_bytes = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, MemoryReading& reading) {
  visit("allocated_bytes",
        reading.allocated_bytes,
        {"in tensors, rounded as the allocator rounds", kBytes});
  visit("reserved_bytes", reading.reserved_bytes, {"taken from the device", kBytes});
}

/// Wall time of a program's main thread.
struct ProgramWaits {
  double sleeping_seconds = 0;
  double loading_seconds = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, ProgramWaits& waits) {
  visit("sleeping_seconds", waits.sleeping_seconds, {"it slept", kSeconds});
  visit("loading_seconds", waits.loading_seconds, {"it waited for its data loader", kSeconds});
}

/// Memory and time of one phase. Its name is build_model, build_optimizer,
/// iteration_N.forward_backward or iteration_N.optimizer_step.
struct PhaseRecord {
  std::string name;
  MemoryReading before, after, peak;
  double seconds = 0;  ///< wall time; it shows the GPU's time only on the device cuda
  std::optional<ProgramWaits> waits = std::nullopt;  ///< of a program that slept or loaded data
};
template <class Visitor>
void visit_fields(Visitor& visit, PhaseRecord& phase) {
  visit("name", phase.name, "the phase");
  visit("before", phase.before, "at its start");
  visit("after", phase.after, "at its end");
  visit("peak", phase.peak, "largest during it");
  visit("seconds", phase.seconds, {"wall time", kSeconds});
  visit("waits", phase.waits, "of these seconds, what the program waited");
}

/// One parameter of the shard. If tensor_sharded, the tensor ranks hold different parts; else all
/// hold the same values. If shared_copy, it is a second copy of a parameter that another stage owns
/// (a tied output layer).
struct ParameterRecord {
  std::string name;
  std::vector<int64_t> shape;
  std::string dtype;
  int64_t bytes = 0;
  bool tensor_sharded = false;
  bool shared_copy = false;
};
template <class Visitor>
void visit_fields(Visitor& visit, ParameterRecord& parameter) {
  visit("name", parameter.name, "path in the model");
  visit("shape", parameter.shape, {"local shape", kCount});
  visit("dtype", parameter.dtype, "element type");
  visit("bytes", parameter.bytes, {"elements x element size", kBytes});
  visit("tensor_sharded", parameter.tensor_sharded, "tensor ranks hold different parts");
  visit("shared_copy", parameter.shared_copy, "copy of a parameter that another stage owns");
}

struct ParametersRecord {
  int64_t count = 0;
  int64_t bytes = 0;
  std::vector<ParameterRecord> tensors;
};
template <class Visitor>
void visit_fields(Visitor& visit, ParametersRecord& parameters) {
  visit("count", parameters.count, {"elements in this rank's shard", kCount});
  visit("bytes", parameters.bytes, {"bytes of the shard", kBytes});
  visit("tensors", parameters.tensors, "each parameter");
}

/// Lasting state, in tensor bytes (elements x element size). Padding and step counters, which
/// closed formulas leave out, are separate terms.
struct ModelStateRecord {
  int64_t parameter_bytes = 0;
  int64_t gradient_bytes = 0;
  int64_t master_weight_bytes = 0;
  int64_t optimizer_state_bytes = 0;
  int64_t parameter_padding_bytes = 0;
  int64_t gradient_padding_bytes = 0;
  int64_t gradient_stand_in_bytes = 0;  ///< megatron-lm: see models/shard/parameters.h
  int64_t step_scalar_bytes = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, ModelStateRecord& state) {
  visit("parameter_bytes", state.parameter_bytes, {"parameters", kBytes});
  visit("gradient_bytes", state.gradient_bytes, {"gradient buffers", kBytes});
  visit("master_weight_bytes", state.master_weight_bytes, {"fp32 master weights", kBytes});
  visit("optimizer_state_bytes", state.optimizer_state_bytes, {"moments or momentum", kBytes});
  visit("parameter_padding_bytes",
        state.parameter_padding_bytes,
        {"padding of the parameter buffer", kBytes});
  visit("gradient_padding_bytes",
        state.gradient_padding_bytes,
        {"padding of the gradient buffer", kBytes});
  visit("gradient_stand_in_bytes",
        state.gradient_stand_in_bytes,
        {"what TransformerEngine gives autograd in place of fused gradients", kBytes});
  visit("step_scalar_bytes",
        state.step_scalar_bytes,
        {"the optimizer's step counters, and scales of moments in 16 bits", kBytes});
}

/// What the optimizer keeps in the host's memory, in tensor bytes, except page_locked_bytes and
/// total_bytes: for page-locked memory PyTorch's allocator rounds each piece up to a power of two
/// and frees nothing.
struct HostMemoryRecord {
  std::vector<int64_t> pieces;  ///< parameters of each piece, in the order of the updates
  int64_t master_weight_bytes = 0;
  int64_t optimizer_state_bytes = 0;
  int64_t gradient_bytes = 0;
  int64_t page_locked_bytes = 0;  ///< taken by PyTorch's allocator
  int64_t total_bytes = 0;        ///< page_locked_bytes and what is not page-locked
};
template <class Visitor>
void visit_fields(Visitor& visit, HostMemoryRecord& host) {
  visit("pieces", host.pieces, {"parameters of each piece, in the order of the updates", kCount});
  visit("master_weight_bytes", host.master_weight_bytes, {"fp32 master weights", kBytes});
  visit("optimizer_state_bytes", host.optimizer_state_bytes, {"moments", kBytes});
  visit("gradient_bytes", host.gradient_bytes, {"fp32 gradients, copied there", kBytes});
  visit(
      "page_locked_bytes", host.page_locked_bytes, {"taken by PyTorch's pinned allocator", kBytes});
  visit("total_bytes", host.total_bytes, {"page-locked or not", kBytes});
}

struct MicroBatchRecord {
  int64_t total = 0;
  int64_t executed = 0;
  int64_t most_in_flight = 0;  ///< counted while running
  /// Bytes that one forward keeps for its backward, counted in allocator blocks. Empty if memory
  /// was not followed.
  std::optional<int64_t> activation_bytes;
};
template <class Visitor>
void visit_fields(Visitor& visit, MicroBatchRecord& record) {
  visit("total", record.total, {"in the plan", kCount});
  visit("executed", record.executed, {"that were run", kCount});
  visit("most_in_flight", record.most_in_flight, {"whose activations were held at once", kCount});
  visit("activation_bytes",
        record.activation_bytes,
        {"kept by one forward for its backward", kBytes});
}

/// Times in one iteration as planned, rounded to the nearest, of what was executed so often.
int64_t planned_count(int64_t executed_count,
                      Direction direction,
                      const MicroBatchRecord& micro_batches);

/// Where the largest allocated peak was, and what filled it. The place and the categories are known
/// only if memory was attributed; then the categories add up to allocated_bytes.
struct PeakRecord {
  int64_t allocated_bytes = 0;
  int64_t reserved_bytes = 0;
  std::string phase;
  std::string module;
  std::string operator_name;
  std::optional<Direction> direction;
  std::optional<int64_t> micro_batch;  ///< empty outside micro-batches
  std::optional<CategoryBytes> categories;
};
template <class Visitor>
void visit_fields(Visitor& visit, PeakRecord& peak) {
  visit("allocated_bytes", peak.allocated_bytes, {"largest of all phases", kBytes});
  visit("reserved_bytes", peak.reserved_bytes, {"largest of all phases", kBytes});
  visit("phase", peak.phase, "where the allocated peak was");
  visit("module", peak.module, "whose allocation made it");
  visit("operator", peak.operator_name, "the operator that allocated");
  visit("direction", peak.direction, "forward, recompute, backward, ...");
  visit("micro_batch", peak.micro_batch, {"which one was running", kCount});
  visit("categories", peak.categories, "what the peak is made of");
}

/// One module of the shard, including the modules inside it. forward_peak_bytes and
/// backward_peak_bytes are the most bytes that were allocated on the device while it ran; recompute
/// counts as backward.
struct ModuleRecord {
  std::string path;  ///< "layers.3.mlp.linear_fc1"
  int64_t parameter_bytes = 0;
  int64_t activation_bytes_at_peak = 0;
  int64_t forward_peak_bytes = 0;
  int64_t backward_peak_bytes = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, ModuleRecord& module) {
  visit("path", module.path, "place in the model");
  visit("parameter_bytes", module.parameter_bytes, {"of its parameters", kBytes});
  visit(
      "activation_bytes_at_peak", module.activation_bytes_at_peak, {"that the peak holds", kBytes});
  visit("forward_peak_bytes",
        module.forward_peak_bytes,
        {"of the device, during its forward", kBytes});
  visit("backward_peak_bytes",
        module.backward_peak_bytes,
        {"of the device, during its backward", kBytes});
}

/// Statistics of PyTorch's caching allocator: peaks are the largest of all phases, counts are for
/// the whole run. All are zero on the device cpu.
struct AllocatorRecord {
  int64_t requested_peak_bytes = 0;
  int64_t active_peak_bytes = 0;
  int64_t inactive_split_peak_bytes = 0;
  int64_t segments_peak = 0;
  int64_t device_allocations = 0;
  int64_t retries = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, AllocatorRecord& allocator) {
  visit("requested_peak_bytes",
        allocator.requested_peak_bytes,
        {"asked for, before rounding", kBytes});
  visit("active_peak_bytes",
        allocator.active_peak_bytes,
        {"allocated, or freed but still in use", kBytes});
  visit("inactive_split_peak_bytes",
        allocator.inactive_split_peak_bytes,
        {"free, in segments that are partly in use", kBytes});
  visit("segments_peak",
        allocator.segments_peak,
        {"segments held (expandable ones not counted)", kCount});
  visit("device_allocations",
        allocator.device_allocations,
        {"calls of cudaMalloc or cuMemMap", kCount});
  visit("retries",
        allocator.retries,
        {"how often the allocator freed its cache to satisfy a request", kCount});
}

/// Equal collective calls of iteration 1, counted. `count` is for one iteration as planned,
/// `executed_count` for the iteration that was run.
struct CollectiveRecord {
  CollectiveCall call;
  std::string phase;
  Direction direction = Direction::kForward;
  std::string module;
  int64_t chunk = -1;  ///< of the stage, or -1 if it is not of one chunk
  int64_t count = 0;
  int64_t executed_count = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, CollectiveRecord& record) {
  visit("kind", record.call.kind, "which collective");
  visit("group", record.call.group, "whose ranks");
  visit("group_size", record.call.group_size, {"how many", kGroupSize});
  visit("dtype", record.call.dtype, "element type");
  visit("bytes", record.call.bytes, {"size as nccl-tests counts it", kBytes});
  visit("peer", record.call.peer, {"member index for send and recv, else -1", kMemberOrNone});
  visit("asynchronous", record.call.asynchronous, "called with asyncOp");
  visit("phase", record.phase, "forward_backward or optimizer_step");
  visit("direction", record.direction, "where in the iteration");
  visit("module", record.module, "who called it");
  visit("chunk", record.chunk, {"model chunk of the stage, or -1", kMemberOrNone});
  visit("count", record.count, {"in one iteration as planned", kCount});
  visit("executed_count", record.executed_count, {"in the iteration that was run", kCount});
}

/// Equal leaf operators of iteration 1, counted as in CollectiveRecord.
struct OperatorRecord {
  std::string name;                          ///< "aten::mm"
  std::vector<std::vector<int64_t>> shapes;  ///< of its tensor inputs
  std::string dtype;                         ///< of its first tensor input
  std::string other_dtype;                   ///< of the first input of another type, or ""
  bool is_strided = false;                   ///< a pointwise operator on views or broadcasts
  bool is_misaligned = false;                ///< a product of matrices: as in MatmulShape
  double flops = 0;  ///< of one call; matrix products and attention: 2 per multiply-add
  double bytes = 0;  ///< of one call, inputs read and outputs written
  std::string phase;
  Direction direction = Direction::kForward;
  std::string module_kind;  ///< "attention", "mlp", "experts", "norm", "embedding", ...
  int64_t chunk = -1;       ///< of the stage, or -1 if it is not of one chunk
  int64_t count = 0;
  int64_t executed_count = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, OperatorRecord& record) {
  visit("name", record.name, "the operator");
  visit("shapes", record.shapes, {"of its tensor inputs", kCount});
  visit("dtype", record.dtype, "element type of its first tensor input");
  visit("other_dtype",
        record.other_dtype,
        "of a pointwise operator: element type of the first input of another type, or \"\"");
  visit("strided",
        record.is_strided,
        "a pointwise operator whose inputs do not all fill memory in the same order");
  visit("misaligned",
        record.is_misaligned,
        "a product with rows in memory, or distances of rows, that are no multiples of 16 bytes");
  visit("flops", record.flops, {"of one call", kWork});
  visit("bytes", record.bytes, {"of one call", kBytes});
  visit("phase", record.phase, "forward_backward or optimizer_step");
  visit("direction", record.direction, "where in the iteration");
  visit("module_kind", record.module_kind, "which part of the model");
  visit("chunk", record.chunk, {"model chunk of the stage, or -1", kMemberOrNone});
  visit("count", record.count, {"in one iteration as planned", kCount});
  visit("executed_count", record.executed_count, {"in the iteration that was run", kCount});
}

/// What happened when the rank did not fit and was run again without the limit.
struct OutOfMemoryRecord {
  std::string phase;
  std::string module;         ///< path of the module that was running
  std::string operator_name;  ///< "" when memory ran out outside operators
  int64_t requested_bytes = 0;
  int64_t free_bytes = 0;  ///< what the allocator could still take within the limit
  std::string message;     ///< the allocator's message
};
template <class Visitor>
void visit_fields(Visitor& visit, OutOfMemoryRecord& record) {
  visit("phase", record.phase, "where memory ran out");
  visit("module", record.module, "in which module");
  visit("operator", record.operator_name, "in which operator");
  visit("requested_bytes", record.requested_bytes, {"asked for", kCount});
  visit("free_bytes", record.free_bytes, {"not taken from the device yet", kCount});
  visit("message", record.message, "the allocator's words");
}

struct RankProfile {
  DocumentHead head{kProfileSchemaVersion, "rank_profile"};
  ToolVersion tool;
  JsonValue plan;  ///< the resolved plan
  int64_t rank = 0;
  int64_t world_size = 1;
  RankCoordinate coordinate;
  DeviceRecord device;
  ParametersRecord parameters;
  std::optional<ModelStateRecord> model_state;  ///< empty for a program without a plan
  std::optional<HostMemoryRecord> host_memory;
  MicroBatchRecord micro_batches;
  bool limit_lifted = false;
  std::optional<OutOfMemoryRecord> out_of_memory;
  std::vector<PhaseRecord> phases;
  PeakRecord peak;
  AllocatorRecord allocator;
  std::vector<ModuleRecord> modules;
  std::vector<CollectiveRecord> collectives;
  std::vector<OperatorRecord> operators;
  std::optional<StepOrder> order;        ///< empty for a program
  std::optional<ProgramRecord> program;  ///< set by `onerank exec`, which knows no plan
  std::optional<Trace> trace;            ///< set if an iteration of a program was recorded whole
};
template <class Visitor>
void visit_fields(Visitor& visit, RankProfile& profile) {
  visit_head(visit, profile.head);
  visit("tool", profile.tool, "who wrote it");
  visit("plan", profile.plan, "the resolved plan");
  visit("rank", profile.rank, {"the rank that was run", kCount});
  visit("world_size", profile.world_size, {"of the simulated world", kGroupSize});
  visit("coordinate", profile.coordinate, "its place along each axis");
  visit("device", profile.device, "what it ran on");
  visit("parameters", profile.parameters, "of its shard");
  visit("model_state", profile.model_state, "lasting state by kind");
  visit("host_memory", profile.host_memory, "what the optimizer keeps on the host, if it does");
  visit("micro_batches", profile.micro_batches, "how many ran");
  visit("limit_lifted", profile.limit_lifted, "it did not fit and ran again without the limit");
  visit("out_of_memory", profile.out_of_memory, "where it did not fit");
  visit("phases", profile.phases, "memory and time by phase");
  visit("peak", profile.peak, "the largest peak");
  visit("allocator", profile.allocator, "what the allocator says of itself");
  visit("modules", profile.modules, "memory by module");
  visit("collectives", profile.collectives, "communication of one iteration");
  visit("operators", profile.operators, "compute of one iteration");
  visit("order", profile.order, "of the operators and collectives of a plan's rank");
  visit("program", profile.program, "of a program that was run in place of a plan's shard");
  visit("trace", profile.trace, "of the program's recorded iteration");
}

/// "rank-00017.json"
std::string profile_file_name(int64_t rank);

/// Reads a profile. Throws UserError when the text is no profile or has another version.
RankProfile read_rank_profile(std::string_view text, const std::string& origin);

}  // namespace estimator
