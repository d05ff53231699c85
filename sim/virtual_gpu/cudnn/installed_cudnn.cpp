#include "sim/virtual_gpu/cudnn/installed_cudnn.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include "sim/virtual_gpu/cudart/device.h"

namespace virtual_gpu::cudnn {
namespace {

constexpr std::size_t kLargestAnswer = 16;  // engines of one graph
constexpr Kind kDevicePropertiesKind = static_cast<Kind>(38);

/// The backend of the real library.
struct Library {
  cudnnStatus_t (*create)(Kind, void**) = nullptr;
  cudnnStatus_t (*destroy)(void*) = nullptr;
  cudnnStatus_t (*set)(void*, int, int, int64_t, const void*) = nullptr;
  cudnnStatus_t (*get)(void*, int, int, int64_t, int64_t*, void*) = nullptr;
  cudnnStatus_t (*finalize)(void*) = nullptr;
  void* device = nullptr;  // the properties of the GPU that is played

  explicit operator bool() const { return device != nullptr; }
};

/// <site-packages>/nvidia/cudnn/lib, beside <site-packages>/torch/lib.
std::filesystem::path folder_beside_torch() {
  void* torch = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
  link_map* map = nullptr;
  if (torch == nullptr || dlinfo(torch, RTLD_DI_LINKMAP, &map) != 0) return {};
  const std::filesystem::path packages =
      std::filesystem::path(map->l_name).parent_path().parent_path().parent_path();
  return packages / "nvidia" / "cudnn" / "lib";
}

std::filesystem::path library_file() {
  const char* folder = std::getenv("ONERANK_CUDNN");
  const auto file = (folder != nullptr ? std::filesystem::path(folder) : folder_beside_torch()) /
                    "libcudnn_graph.so.9";
  std::error_code error;
  return std::filesystem::exists(file, error) ? file : std::filesystem::path();
}

struct Property {
  const char* name;
  int attribute;  // of cudaDeviceAttr
};

/// The members of CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION in cuDNN 9.19.
constexpr Property kProperties[] = {{"regsPerBlock", 12},
                                    {"multiProcessorCount", 16},
                                    {"warpSize", 10},
                                    {"maxSharedMemoryPerBlock", 8},
                                    {"maxSharedMemoryPerBlockOptin", 97},
                                    {"reservedSharedMemoryPerBlock", 111},
                                    {"maxRegistersPerSM", 82},
                                    {"maxCtasPerSM", 106},
                                    {"maxThreadsPerBlock", 1},
                                    {"maxThreadsPerSM", 39},
                                    {"pciDeviceId", 34},
                                    {"isTccDriver", 35},
                                    {"supportCoopLaunch", 95},
                                    {"smClockRateKHz", 13},
                                    {"memClockRateKHz", 36},
                                    {"l2CacheSize", 38}};

std::string device_json() {
  const auto attribute = [](int number) {
    int value = 0;
    cudaDeviceGetAttribute(&value, number, 0);
    return std::to_string(value);
  };
  const auto three = [&](int first) {
    return "[" + attribute(first) + "," + attribute(first + 1) + "," + attribute(first + 2) + "]";
  };
  const CapabilityFacts& facts = virtual_gpu::device()->facts;
  std::string json = "{\"deviceName\":\"" + virtual_gpu::device()->spec.name + "\"";
  json += ",\"cudaDeviceId\":0,\"driverVer\":13000,\"cudartVer\":13000";
  json += ",\"totalGlobalMem\":" + std::to_string(virtual_gpu::device()->spec.memory_bytes);
  json += ",\"deviceVer\":" + std::to_string(100 * facts.major + 10 * facts.minor);
  json += ",\"maxBlockSize\":" + three(2) + ",\"maxGridSize\":" + three(5);
  for (const Property& property : kProperties) {
    json += std::string(",\"") + property.name + "\":" + attribute(property.attribute);
  }
  return json + "}";
}

/// Descriptors of the real library, destroyed with this.
class Mirror {
 public:
  explicit Mirror(const Library& library) : library_(library) {}
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;
  ~Mirror() {
    for (auto place = made_.rbegin(); place != made_.rend(); ++place) library_.destroy(*place);
  }

  void* make(Kind kind) {
    void* made = nullptr;
    if (library_.create(kind, &made) != CUDNN_STATUS_SUCCESS) return nullptr;
    made_.push_back(made);
    return made;
  }

  /// The same descriptor in the real library; null if it refuses it.
  void* of(const Node& node) {
    const auto place = known_.find(&node);
    if (place != known_.end()) return place->second;
    void* made = make(node.kind);
    bool is_good = made != nullptr;
    for (const Attribute& attribute : node.attributes) is_good = is_good && copy(attribute, made);
    if (!is_good || library_.finalize(made) != CUDNN_STATUS_SUCCESS) made = nullptr;
    known_[&node] = made;
    return made;
  }

 private:
  bool copy(const Attribute& attribute, void* to) {
    const void* data = attribute.bytes.data();
    std::vector<void*> descriptors;
    if (attribute.type == kHandleType || attribute.name == kGraphEngineCount) return true;
    if (attribute.type == kDescriptorType) {
      for (const NodePtr& node : attribute.nodes) {
        descriptors.push_back(of(*node));
        if (descriptors.back() == nullptr) return false;
      }
      data = descriptors.data();
    }
    return library_.set(to, attribute.name, attribute.type, attribute.count, data) ==
           CUDNN_STATUS_SUCCESS;
  }

  const Library& library_;
  std::vector<void*> made_;
  std::map<const Node*, void*> known_;
};

Library load() {
  const std::filesystem::path file = library_file();
  if (file.empty() || virtual_gpu::device() == nullptr) return {};
  void* opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return {};
  Library library;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(opened, name));
    return function != nullptr;
  };
  if (!find(library.create, "cudnnBackendCreateDescriptor") ||
      !find(library.destroy, "cudnnBackendDestroyDescriptor") ||
      !find(library.set, "cudnnBackendSetAttribute") ||
      !find(library.get, "cudnnBackendGetAttribute") ||
      !find(library.finalize, "cudnnBackendFinalize")) {
    return {};
  }
  void* device = nullptr;
  const std::string json = device_json();
  if (library.create(kDevicePropertiesKind, &device) != CUDNN_STATUS_SUCCESS ||
      library.set(device, kDeviceJson, kCharType, static_cast<int64_t>(json.size()), json.data()) !=
          CUDNN_STATUS_SUCCESS ||
      library.finalize(device) != CUDNN_STATUS_SUCCESS) {
    return {};
  }
  library.device = device;
  std::fprintf(
      stderr, "onerank: note: workspaces of cuDNN are those that %s plans\n", file.c_str());
  return library;
}

/// Whether every step succeeded: cuDNN's calls in a row.
template <class... Status>
bool succeed(Status... status) {
  return ((status == CUDNN_STATUS_SUCCESS) && ...);
}

std::optional<EngineChoice> choice_of(const Library& library, Mirror& mirror, void* config) {
  EngineChoice choice;
  int64_t count = 0;
  void* engine = mirror.make(Kind::kEngine);
  if (engine == nullptr ||
      !succeed(library.get(
                   config, kConfigWorkspaceBytes, kInt64Type, 1, &count, &choice.workspace_bytes),
               library.get(config, kConfigEngine, kDescriptorType, 1, &count, &engine))) {
    return std::nullopt;
  }
  constexpr int64_t kNotes = 16;
  choice.numerical_notes.resize(kNotes);
  if (!succeed(library.get(engine, kEngineIndex, kInt64Type, 1, &count, &choice.engine),
               library.get(engine,
                           kEngineNumericalNotes,
                           kNumericalNoteType,
                           kNotes,
                           &count,
                           choice.numerical_notes.data()))) {
    return std::nullopt;
  }
  choice.numerical_notes.resize(static_cast<std::size_t>(count));
  return choice;
}

}  // namespace

std::optional<std::vector<EngineChoice>> ask_installed_cudnn(const Node& graph, int mode) {
  static const Library library = load();
  static std::mutex mutex;
  if (!library) return std::nullopt;
  const std::lock_guard lock(mutex);
  Mirror mirror(library);
  void* real_graph = mirror.of(graph);
  void* heuristics = mirror.make(Kind::kEngineHeuristics);
  if (real_graph == nullptr || heuristics == nullptr ||
      !succeed(library.set(heuristics, kHeuristicsGraph, kDescriptorType, 1, &real_graph),
               library.set(heuristics, kHeuristicsMode, kHeuristicsModeType, 1, &mode),
               library.set(heuristics, kHeuristicsDevice, kDescriptorType, 1, &library.device),
               library.finalize(heuristics))) {
    return std::nullopt;
  }
  std::vector<void*> configs(kLargestAnswer);
  for (void*& config : configs) config = mirror.make(Kind::kEngineConfig);
  int64_t count = 0;
  if (!succeed(library.get(heuristics,
                           kHeuristicsResults,
                           kDescriptorType,
                           static_cast<int64_t>(configs.size()),
                           &count,
                           configs.data()))) {
    return std::nullopt;
  }
  configs.resize(std::min(configs.size(), static_cast<std::size_t>(count)));
  std::vector<EngineChoice> choices;
  for (void* config : configs) {
    if (auto choice = choice_of(library, mirror, config)) choices.push_back(std::move(*choice));
  }
  return choices;
}

}  // namespace virtual_gpu::cudnn
