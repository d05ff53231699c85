// The trace of one iteration: everything that a rank asked of its GPU, in the order in which its
// host asked for it. `onerank exec` records it; the replay makes a step time from it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/enum_names.h"
#include "estimator/base/option.h"

namespace estimator {

enum class WorkKind {
  kKernel,      ///< a kernel that the program launched
  kProduct,     ///< a matrix product of cuBLAS
  kCopy,        ///< a copy; its name says between which memories
  kFill,        ///< a memset
  kCollective,  ///< a collective of NCCL
  kMessages,    ///< the sends and receives of one NCCL group, or a single one
  kSignal,  ///< a kernel that tells ranks something or waits for them, in memory that they share
};
constexpr std::array<EnumName<WorkKind>, 7> enum_names(WorkKind) {
  return {{{WorkKind::kKernel, "kernel"},
           {WorkKind::kProduct, "product"},
           {WorkKind::kCopy, "copy"},
           {WorkKind::kFill, "fill"},
           {WorkKind::kCollective, "collective"},
           {WorkKind::kMessages, "messages"},
           {WorkKind::kSignal, "signal"}}};
}

/// How it is known how many bytes a work moves.
enum class BytesSource {
  kOperator,    ///< from the tensors of the operator that launched it
  kParameters,  ///< from the blocks of memory that the kernel was given
  kCall,        ///< the call says it: a copy, fill, product, collective or message
  kNothing,     ///< it is not known, and counts as none
};
constexpr std::array<EnumName<BytesSource>, 4> enum_names(BytesSource) {
  return {{{BytesSource::kOperator, "operator"},
           {BytesSource::kParameters, "parameters"},
           {BytesSource::kCall, "call"},
           {BytesSource::kNothing, "nothing"}}};
}

enum class ConvolutionPass { kForward, kBackwardData, kBackwardFilter };
constexpr std::array<EnumName<ConvolutionPass>, 3> enum_names(ConvolutionPass) {
  return {{{ConvolutionPass::kForward, "forward"},
           {ConvolutionPass::kBackwardData, "backward_data"},
           {ConvolutionPass::kBackwardFilter, "backward_filter"}}};
}

/// Begins the names of cuDNN's products.
inline constexpr std::string_view kConvolution = "cudnn_convolution_";
inline std::string convolution_name(ConvolutionPass pass) {
  return std::string(kConvolution) + to_string(pass);
}
/// Of a product with this name; none if it is cuBLAS's.
inline std::optional<ConvolutionPass> convolution_pass(std::string_view name) {
  if (!name.starts_with(kConvolution)) return std::nullopt;
  return value_named<ConvolutionPass>(name.substr(kConvolution.size()));
}

inline constexpr const char* kHostToDevice = "host_to_device";
inline constexpr const char* kDeviceToHost = "device_to_host";
inline constexpr const char* kDeviceToDevice = "device_to_device";
/// Between memory of this rank and memory of another one, which it has mapped.
inline constexpr const char* kPeerToPeer = "peer_to_peer";

struct TraceMessage {
  bool is_send = false;
  int64_t bytes = 0;
  int64_t peer = 0;
  bool operator==(const TraceMessage&) const = default;
};
template <class Visitor>
void visit_fields(Visitor& visit, TraceMessage& message) {
  visit("is_send", message.is_send, "else it is a receive");
  visit("bytes", message.bytes, {"of the message", kBytes});
  visit("peer", message.peer, {"member index of the other rank", kCount});
}

/// Works of one kind, name and size are equal, and are described once.
struct TraceWork {
  WorkKind kind = WorkKind::kKernel;
  std::string name;           ///< of the kernel or collective, "cublas", or one of k...To...
  std::string operator_name;  ///< the innermost operator that asked for it, or ""
  std::string dtype;          ///< c10's name: of a product's first matrix, else of the operator
  std::string other_dtype;    ///< of a pointwise operator: as in OperatorRecord
  bool is_strided = false;    ///< as in OperatorRecord
  std::string result_dtype;   ///< of a product
  /// Of the operator's input tensors. Of a product: its batch, m, n and k, row-major, in one list;
  /// of a convolution then a group's channels of x and of y, the elements of a channel's filter, of
  /// x and of y.
  /// Of a kernel that no operator launched: the sizes that it was told, in one list, or none.
  std::vector<std::vector<int64_t>> shapes;
  double flops = 0;                  ///< of products and attention: 2 per multiply-add
  bool has_unknown_lengths = false;  ///< attention: lengths or a mask are taken
  int64_t bytes = 0;
  /// Of a kernel: over the link to GPUs whose memory it has mapped, beside `bytes`, in the busier
  /// direction.
  int64_t peer_bytes = 0;
  int64_t threads = 0;  ///< of a kernel, in all blocks
  BytesSource bytes_source = BytesSource::kCall;
  bool accumulates = false;    ///< a product is added to what its result holds
  bool uses_tf32 = false;      ///< of a product of fp32 matrices
  int64_t scale_mode = 0;      ///< of a product, cublasLtMatmulMatrixScale_t; 0: one scale a matrix
  bool is_misaligned = false;  ///< of a product: as in MatmulShape
  int64_t alignment = 0;       ///< of a product: as in onerank_virtual_gpu_product
  bool has_mask = false;       ///< of attention: a tensor is added to its scores
  bool has_dropout = false;    ///< of attention
  bool is_pageable = false;    ///< of a copy: the host's memory is not page-locked
  int64_t communicator = -1;   ///< place among the program's communicators
  std::vector<TraceMessage> messages;
  bool operator==(const TraceWork&) const = default;
};
template <class Visitor>
void visit_fields(Visitor& visit, TraceWork& work) {
  visit("kind", work.kind, "what it is");
  visit("name", work.name, "of the kernel, collective or copy");
  visit("operator", work.operator_name, "the innermost operator that asked for it, or \"\"");
  visit("dtype", work.dtype, "element type of a product's first matrix, else of the operator");
  visit("other_dtype",
        work.other_dtype,
        "of a pointwise operator: element type of the first input of another type, or \"\"");
  visit("strided",
        work.is_strided,
        "a pointwise operator whose inputs do not all fill memory in the same order");
  visit("result_dtype", work.result_dtype, "element type of a product's result");
  visit("shapes",
        work.shapes,
        {"of the operator's inputs; of a product batch, m, n and k, and of a convolution then "
         "channels "
         "of x and y in a group and elements of a filter, of x and of y; of a kernel without an "
         "operator the sizes that it was told",
         kCount});
  visit("flops", work.flops, {"of matrix products and attention", kWork});
  visit("unknown_lengths",
        work.has_unknown_lengths,
        "attention over sequences one behind the other whose lengths are not known, or with a mask "
        "of which not all is known");
  visit("bytes", work.bytes, {"moved; of a collective as nccl-tests counts it", kBytes});
  visit("peer_bytes",
        work.peer_bytes,
        {"of a kernel: over the link to GPUs whose memory it has mapped, in the busier direction",
         kBytes});
  visit("threads", work.threads, {"of a kernel, in all blocks", kCount});
  visit("bytes_source", work.bytes_source, "how the bytes are known");
  visit("accumulates", work.accumulates, "a product is added to its result");
  visit("uses_tf32", work.uses_tf32, "an fp32 product may be rounded to TF32");
  visit("scale_mode", work.scale_mode, {"of a product, as cuBLASLt numbers it", kCount});
  visit("misaligned",
        work.is_misaligned,
        "a product with rows in memory, distances of rows or addresses that are no multiples of 16 "
        "bytes");
  visit("alignment",
        work.alignment,
        {"of a product, of which its rows in memory, their distances and addresses are multiples; "
         "0: it does not matter",
         kBytes});
  visit("mask", work.has_mask, "of attention: a tensor is added to its scores");
  visit("dropout", work.has_dropout, "of attention: some of its weights are dropped out");
  visit("pageable", work.is_pageable, "a copy whose memory of the host is not page-locked");
  visit(
      "communicator", work.communicator, {"place in program.communicators, or -1", kMemberOrNone});
  visit("messages", work.messages, "of one NCCL group");
}

enum class TraceEventKind : int64_t {
  kLaunch,          ///< the stream is given work number `item`
  kRecord,          ///< an event is recorded in the stream
  kStreamWait,      ///< the stream waits for record `item`
  kHostWaitStream,  ///< the host waits for the stream
  kHostWaitRecord,  ///< the host waits for record `item`
  kHostWaitDevice,  ///< the host waits for all streams
  kHostUpdates,     ///< an optimizer on the CPU moves `item` bytes of the host's memory
};

/// What the host had to do for an event.
enum class HostIssue : int64_t {
  kNothing,        ///< nothing of its own: a record, a wait, or one more work of a CUDA graph
  kCall,           ///< it asked for a work, or launched a graph
  kFusedUpdate,    ///< of kHostUpdates: it went over its tensors once
  kUnfusedUpdate,  ///< of kHostUpdates: one operator after the other went over its tensors
};

/// The events as columns of equal length, because there are thousands of them.
struct TraceEvents {
  std::vector<int64_t> kind;
  std::vector<int64_t> stream;
  std::vector<int64_t> item;
  std::vector<int64_t> module;
  std::vector<int64_t> direction;
  std::vector<int64_t> issue;
  std::vector<int64_t> operators;
};
template <class Visitor>
void visit_fields(Visitor& visit, TraceEvents& events) {
  visit(
      "kind",
      events.kind,
      {"0: work, 1: an event is recorded, 2: the stream waits for a record, 3: the host waits for "
       "the stream, 4: for a record, 5: for all streams, 6: an optimizer updates parameters on the "
       "CPU",
       kCount});
  visit("stream", events.stream, {"number of the stream; -1: none", kMemberOrNone});
  visit("item",
        events.item,
        "place in `works`, or the number of a record: the iteration's own from 0, those of earlier "
        "iterations below; of an update on the CPU the bytes that it moves");
  visit("module", events.module, {"place in `modules`", kCount});
  visit("direction",
        events.direction,
        {"0: forward, 1: recompute, 2: backward, 3: between, 4: optimizer step", kCount});
  visit("issue",
        events.issue,
        {"what the host did: 0: no more, 1: ask for a work or launch a graph, 2: update parameters "
         "in one pass, 3: one operator after the other",
         kCount});
  visit(
      "operators",
      events.operators,
      {"of PyTorch and nodes of autograd that the thread began since its event before, also those "
       "within others and those that ask for no work",
       kCount});
}

/// A stream was given a work.
struct TraceLaunch {
  int64_t item = 0;  ///< place of the work among the distinct works
  int64_t module = 0;
  int64_t direction = 0;       ///< of enum Direction, see rank_profile.h
  bool is_evaluation = false;  ///< see Trace::evaluations
};

/// Calls of an outermost module, to train, with integers in two dims or more, such as the tokens of
/// a batch.
struct TraceInput {
  int64_t model = 0;     ///< number of the module among the outermost ones
  int64_t integers = 0;  ///< elements of the largest such tensor, in a call
  int64_t calls = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, TraceInput& input) {
  visit("model", input.model, {"number of the outermost module", kCount});
  visit("integers", input.integers, {"elements of its largest tensor of integers", kCount});
  visit("calls", input.calls, {"with so many", kCount});
}

/// What a library calls a part of its work in Python, for profilers.
struct TraceRange {
  int64_t event = 0;  ///< number of the event before which it began
  std::string name;
};
template <class Visitor>
void visit_fields(Visitor& visit, TraceRange& range) {
  visit("event", range.event, {"number of the event before which it began", kCount});
  visit("name", range.name, "of the range");
}

/// A call, by numbers of events.
struct TraceCall {
  int64_t begin = 0;
  int64_t end = 0;  ///< behind its last event
};
template <class Visitor>
void visit_fields(Visitor& visit, TraceCall& call) {
  visit("begin", call.begin, {"number of its first event", kCount});
  visit("end", call.end, {"number of the event behind its last one", kCount});
}

struct Trace {
  int64_t iteration = 0;
  int64_t records = 0;                   ///< events that were recorded in the iteration
  bool differentiates_backward = false;  ///< a backward made a graph of its own (create_graph)
  std::vector<std::string> modules;
  std::vector<TraceWork> works;
  std::vector<TraceInput> inputs;
  std::vector<TraceRange> ranges;  ///< that fully_shard opened
  /// Calls of an outermost module that is trained, without gradients, one after the other.
  std::vector<TraceCall> evaluations;
  TraceEvents events;

  const TraceWork& work_of(const TraceLaunch& launch) const {
    return works[static_cast<std::size_t>(launch.item)];
  }
  /// In the order in which the host asked for them.
  std::vector<TraceLaunch> launches() const {
    std::vector<TraceLaunch> found;
    auto call = evaluations.begin();
    for (std::size_t i = 0; i < events.kind.size(); ++i) {
      if (events.kind[i] != static_cast<int64_t>(TraceEventKind::kLaunch)) continue;
      const auto event = static_cast<int64_t>(i);
      while (call != evaluations.end() && call->end <= event) ++call;
      const bool is_evaluation = call != evaluations.end() && call->begin <= event;
      found.push_back({events.item[i], events.module[i], events.direction[i], is_evaluation});
    }
    return found;
  }
};
template <class Visitor>
void visit_fields(Visitor& visit, Trace& trace) {
  visit("iteration", trace.iteration, {"from the end of one optimizer step to the next", kCount});
  visit("records", trace.records, {"events that were recorded in it", kCount});
  visit("differentiates_backward",
        trace.differentiates_backward,
        "a backward made a graph of its own, for gradients of gradients");
  visit("modules", trace.modules, "paths of modules");
  visit("works", trace.works, "distinct works");
  visit("inputs", trace.inputs, "integers on which the program trained its modules");
  visit("ranges", trace.ranges, "that fully_shard opened for profilers, in their order");
  visit("evaluations",
        trace.evaluations,
        "calls without gradients of an outermost module that is trained, in their order");
  visit("events", trace.events, "in the order in which the host asked for them");
}

}  // namespace estimator
