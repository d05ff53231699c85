#include <algorithm>
#include <cstdio>
#include <string>

#include "sim/virtual_gpu/cudnn/descriptor.h"
#include "sim/virtual_gpu/cudnn/engine_choice.h"
#include "sim/virtual_gpu/cudnn/graph_work.h"
#include "sim/virtual_gpu/cudnn/installed_cudnn.h"
#include "sim/virtual_gpu/cudnn/library_work.h"
#include "sim/virtual_gpu/generated_stub.h"

/// cuDNN's backend: graphs of operations, engines for them, plans and their execution.
namespace {

using namespace virtual_gpu::cudnn;

cudnnStatus_t refuse(const std::string& what) {
  virtual_gpu::report_refusal(
      what.c_str(),
      "CUDNN_STATUS_NOT_SUPPORTED (3000)",
      "torch.backends.cudnn.enabled = False runs PyTorch's own kernels; TransformerEngine goes "
      "without cuDNN's attention with NVTE_FUSED_ATTN=0");
  return CUDNN_STATUS_NOT_SUPPORTED;
}

/// A configuration of an engine, as the heuristics return it.
NodePtr config_of(const NodePtr& graph, const EngineChoice& choice) {
  auto engine = std::make_shared<Node>(Node{.kind = Kind::kEngine, .attributes = {}});
  engine->set_node(kEngineGraph, graph);
  engine->set_number(kEngineIndex, kInt64Type, choice.engine);
  Attribute notes{.name = kEngineNumericalNotes,
                  .type = kNumericalNoteType,
                  .count = static_cast<int64_t>(choice.numerical_notes.size())};
  const auto* first = reinterpret_cast<const char*>(choice.numerical_notes.data());
  notes.bytes.assign(first, first + choice.numerical_notes.size() * sizeof(int));
  engine->set(std::move(notes));
  engine->is_final = true;
  auto config = std::make_shared<Node>(Node{.kind = Kind::kEngineConfig, .attributes = {}});
  config->set_node(kConfigEngine, engine);
  config->set_number(kConfigWorkspaceBytes, kInt64Type, choice.workspace_bytes);
  config->set_number(kConfigSharedBytes, kInt64Type, 0);  // asked only to leave large ones out
  config->is_final = true;
  return config;
}

std::vector<EngineChoice> engines_for(const Node& graph, int mode) {
  if (auto chosen = ask_installed_cudnn(graph, mode); chosen && !chosen->empty()) return *chosen;
  int unknown = 0;
  const auto work = work_of(graph, unknown);
  return work ? assumed_engines(*work) : std::vector<EngineChoice>{};
}

cudnnStatus_t finalize_graph(Node& graph) {
  int unknown = 0;
  const auto work = work_of(graph, unknown);
  if (!work) return refuse("an operation of cuDNN's backend, kind " + std::to_string(unknown));
  const auto engines = static_cast<int64_t>(assumed_engines(*work).size());
  graph.set_number(kGraphEngineCount, kInt64Type, engines);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize_heuristics(Node& heuristics) {
  const NodePtr graph = heuristics.node(kHeuristicsGraph);
  if (!graph) return CUDNN_STATUS_BAD_PARAM;
  Attribute results{.name = kHeuristicsResults, .type = kDescriptorType};
  for (const EngineChoice& choice :
       engines_for(*graph, static_cast<int>(heuristics.number(kHeuristicsMode)))) {
    results.nodes.push_back(config_of(graph, choice));
  }
  results.count = static_cast<int64_t>(results.nodes.size());
  heuristics.set(std::move(results));
  return CUDNN_STATUS_SUCCESS;
}

/// An engine that the program chose by its number.
cudnnStatus_t finalize_engine(Node& engine) {
  const NodePtr graph = engine.node(kEngineGraph);
  if (!graph) return CUDNN_STATUS_BAD_PARAM;
  for (const EngineChoice& choice : engines_for(*graph, 0)) {
    if (choice.engine != engine.number(kEngineIndex)) continue;
    const NodePtr config = config_of(graph, choice);
    engine.set(*config->node(kConfigEngine)->find(kEngineNumericalNotes));
    return CUDNN_STATUS_SUCCESS;
  }
  return CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t finalize_config(Node& config) {
  const NodePtr engine = config.node(kConfigEngine);
  const NodePtr graph = engine ? engine->node(kEngineGraph) : nullptr;
  if (!graph) return CUDNN_STATUS_BAD_PARAM;
  for (const EngineChoice& choice : engines_for(*graph, 0)) {
    if (choice.engine != engine->number(kEngineIndex)) continue;
    config.set_number(kConfigWorkspaceBytes, kInt64Type, choice.workspace_bytes);
    return CUDNN_STATUS_SUCCESS;
  }
  return CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t finalize_plan(Node& plan) {
  const NodePtr config = plan.node(kPlanConfig);
  if (!config) return refuse("a plan of cuDNN that was written to a file");
  plan.set_number(kPlanWorkspaceBytes, kInt64Type, config->number(kConfigWorkspaceBytes));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finalize(Node& node) {
  switch (node.kind) {
    case Kind::kOperationGraph:
      return finalize_graph(node);
    case Kind::kEngineHeuristics:
      return finalize_heuristics(node);
    case Kind::kEngine:
      return finalize_engine(node);
    case Kind::kEngineConfig:
      return finalize_config(node);
    case Kind::kExecutionPlan:
      return finalize_plan(node);
    default:
      return CUDNN_STATUS_SUCCESS;
  }
}

/// Lists of which the virtual GPU's engines have none.
bool may_be_empty(int name) {
  constexpr int kNames[] = {kConfigIntermediates,
                            kConfigKnobs,
                            kEngineKnobs,
                            kEngineNumericalNotes,
                            kEngineLayouts,
                            kEngineBehaviorNotes};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnBackendCreateDescriptor(Kind kind, void** descriptor) {
  *descriptor = new Descriptor{std::make_shared<Node>(Node{.kind = kind, .attributes = {}})};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(void* descriptor) {
  delete static_cast<Descriptor*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(
    void* descriptor, int name, int type, int64_t count, const void* elements) {
  if (descriptor == nullptr || (elements == nullptr && count > 0)) {
    return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  }
  Attribute attribute{.name = name, .type = type, .count = count};
  if (type == kDescriptorType) {
    const auto* const others = static_cast<Descriptor* const*>(elements);
    for (int64_t i = 0; i < count; ++i) {
      if (others[i] == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
      attribute.nodes.push_back(others[i]->node);
    }
  } else {
    const auto* const bytes = static_cast<const char*>(elements);
    const std::size_t size = static_cast<std::size_t>(count) * element_bytes(type);
    attribute.bytes.assign(bytes, bytes + size);
  }
  static_cast<Descriptor*>(descriptor)->node->set(std::move(attribute));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(
    void* descriptor, int name, int type, int64_t requested, int64_t* count, void* elements) {
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  int64_t ignored = 0;
  int64_t& returned = count == nullptr ? ignored : *count;
  const Attribute* found = static_cast<Descriptor*>(descriptor)->node->find(name);
  if (found == nullptr) {
    returned = 0;
    if (may_be_empty(name)) return CUDNN_STATUS_SUCCESS;
    return refuse("attribute " + std::to_string(name) + " of cuDNN's backend");
  }
  returned = found->count;
  if (elements == nullptr || requested == 0) return CUDNN_STATUS_SUCCESS;
  returned = std::min(requested, found->count);
  if (type == kDescriptorType) {
    auto* const others = static_cast<Descriptor**>(elements);
    for (int64_t i = 0; i < returned; ++i) {
      others[i]->node = std::const_pointer_cast<Node>(found->nodes[static_cast<std::size_t>(i)]);
    }
  } else {
    std::copy_n(found->bytes.data(),
                static_cast<std::size_t>(returned) * element_bytes(found->type),
                static_cast<char*>(elements));
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(void* descriptor) {
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  Node& node = *static_cast<Descriptor*>(descriptor)->node;
  const cudnnStatus_t status = finalize(node);
  node.is_final = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, void* plan, void*) {
  const Node& node = *static_cast<Descriptor*>(plan)->node;
  if (!node.is_final) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  const NodePtr engine = node.node(kPlanConfig)->node(kConfigEngine);
  int unknown = 0;
  const auto work = work_of(*engine->node(kEngineGraph), unknown);
  if (!work) return CUDNN_STATUS_NOT_SUPPORTED;
  const Attribute* notes = engine->find(kEngineNumericalNotes);
  bool has_tensor_cores = false;
  for (std::size_t i = 0; notes != nullptr && i < notes->bytes.size(); i += sizeof(int)) {
    int note = 0;
    std::memcpy(&note, notes->bytes.data() + i, sizeof note);
    has_tensor_cores = has_tensor_cores || note == kNoteTensorCore;
  }
  run_graph(*work, has_tensor_cores, handle->stream);
  return CUDNN_STATUS_SUCCESS;
}
}
