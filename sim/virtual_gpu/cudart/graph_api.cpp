#include <cuda_runtime_api.h>

#include <utility>

#include "sim/virtual_gpu/cudart/capture.h"
#include "sim/virtual_gpu/cudart/device.h"
#include "sim/virtual_gpu/cudart/last_error.h"

/// CUDA graphs that are captured from streams.

struct CUgraph_st {
  std::shared_ptr<const virtual_gpu::CapturedGraph> captured;
};
struct CUgraphExec_st {
  std::shared_ptr<const virtual_gpu::CapturedGraph> captured;
};

using virtual_gpu::capture;
using virtual_gpu::remember;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (virtual_gpu::device() == nullptr) return remember(cudaErrorInitializationError);
  if (virtual_gpu::is_default(stream)) return remember(cudaErrorStreamCaptureUnsupported);
  return remember(capture().begin(stream) ? cudaSuccess : cudaErrorIllegalState);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (capture().id_of(stream) == 0) return remember(cudaErrorIllegalState);
  auto captured = capture().end(stream);
  if (captured == nullptr) return remember(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st{std::move(captured)};
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const bool is_captured = capture().id_of(stream) != 0;
  *status = is_captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                     cudaStreamCaptureStatus* status,
                                     unsigned long long* id,
                                     cudaGraph_t* graph,
                                     const cudaGraphNode_t** nodes,
                                     const cudaGraphEdgeData** edges,
                                     size_t* dependencies) {
  if (id != nullptr) *id = capture().id_of(stream);
  if (graph != nullptr) *graph = nullptr;
  if (nodes != nullptr) *nodes = nullptr;
  if (edges != nullptr) *edges = nullptr;
  if (dependencies != nullptr) *dependencies = 0;
  return cudaStreamIsCapturing(stream, status);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  thread_local cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
  std::swap(*mode, current);
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (nodes != nullptr) return remember(cudaErrorNotSupported);
  *count = graph->captured->nodes();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable,
                                 cudaGraph_t graph,
                                 unsigned long long) {
  if (graph == nullptr) return remember(cudaErrorInvalidValue);
  *executable = new CUgraphExec_st{graph->captured};
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable,
                                          cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (executable == nullptr) return remember(cudaErrorInvalidValue);
  virtual_gpu::run_graph(*executable->captured, stream);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
