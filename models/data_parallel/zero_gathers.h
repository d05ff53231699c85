// When DeepSpeed's ZeRO stage 3 gathers and releases parameters: PartitionedParameterCoordinator in
// deepspeed/runtime/zero/partitioned_param_coordinator.py of v0.18.3.
//
// A module's parameters are gathered before its forward and before its backward. The first
// micro-batch records in which order modules run. From then on each module begins to gather
// parameters of those that follow, and parameters that are used again soon are not released.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/shard/communicator.h"
#include "models/shard/observer.h"
#include "models/shard/parameters.h"
#include "models/shard/side_stream.h"

namespace models {

struct ZeroGathersOptions {
  int64_t prefetch_elements = 0;    ///< stage3_prefetch_bucket_size
  int64_t persistent_elements = 0;  ///< stage3_param_persistence_threshold
  int64_t live_elements = 0;        ///< stage3_max_live_parameters
  int64_t reuse_elements = 0;       ///< stage3_max_reuse_distance
  bool overlap = true;              ///< gather on a side stream
  at::Device device;
  std::shared_ptr<Communicator> data_group;
  Observer& observer;
};

/// Modules without parameters that run before a module of this name, since the one with parameters
/// before it, in the forward and in the backward: each call of one begins gathers, too.
struct CallsBetween {
  int forward = 0;
  int backward = 0;
};

/// Of Llama in transformers 4.57 (models/llama/modeling_llama.py); `parameter` is one of the
/// module's.
CallsBetween calls_before(const std::string& parameter, bool is_first_layer);

class ZeroGathers {
 public:
  explicit ZeroGathers(ZeroGathersOptions options);

  /// The parameters, in the order in which the model has them. Each has its part.
  void set_parameters(const ParameterList& parameters);

  /// A forward of the whole model begins (reset_step).
  void start_forward();
  /// A module's forward or backward begins (fetch_sub_module), or ends (release_sub_module).
  void before(const void* module, const ParameterList& parameters, bool forward);
  void after(const void* module);
  /// No parameter stays gathered (release_and_reset_all).
  void release_all();
  /// Gathers the small ones, which stay (_post_step).
  void gather_persistent();

 private:
  struct Gather;
  struct Held {
    Parameter* parameter = nullptr;
    int64_t elements = 0;
    bool is_persistent = false;
    bool is_whole = false;
    std::shared_ptr<Gather> gather;  ///< that has begun and for which nobody has waited
    std::set<const void*> users;     ///< modules that run
    bool is_of_module = false;       ///< a module has it that has run
    int64_t number = 0;              ///< in the order of the model
    int64_t fetched_for = -1;        ///< the last step for which it was taken from the queue
  };
  struct Gather {
    std::vector<Held*> held;
    at::Tensor flat;  ///< parts of all of them, rank by rank; undefined for one alone
    PendingCall call;
    bool is_over = false;
  };
  struct Module {
    std::vector<Held*> held;
    CallsBetween calls_before;
  };
  struct Use {
    Held* held = nullptr;
    int64_t step = 0;
  };
  enum class Trace { kNone, kRecording, kComplete };

  Module& module_of(const void* module, const ParameterList& parameters);
  void start_gather(std::vector<Held*> held);
  void gather_one(Held& held, Gather& gather);
  void gather_several(Gather& gather);
  void wait(Held& held);
  void copy_out(const Gather& gather);
  void is_whole(Held& held);
  void take_from_queue(const Module& module);
  void prefetch();
  void wait_for_all();
  void release(Held& held);
  const std::set<const Held*>& to_release(const Module& module);
  std::set<const Held*> not_used_soon(const Module& module) const;
  void complete_trace();

  ZeroGathersOptions options_;
  std::optional<SideStream> gathers_;
  std::deque<Held> held_;
  std::map<const Parameter*, Held*> held_of_;
  std::map<const void*, Module> modules_;
  Trace trace_ = Trace::kNone;
  std::vector<const Module*> order_;
  std::vector<Use> uses_;
  std::deque<Use> queue_;
  /// What a module releases when it ends at a step, as decided at the first time.
  std::map<std::pair<const Module*, int64_t>, std::set<const Held*>> released_at_;
  int64_t step_ = 0;
  int64_t live_ = 0;  ///< elements that are gathered, or begun to be
};

}  // namespace models
