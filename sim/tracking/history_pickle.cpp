// Format: as torch/csrc/cuda/memory_snapshot.cpp of torch 2.11 writes it and
// torch/cuda/_memory_viz.py reads it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "sim/tracking/attribution.h"
#include "sim/tracking/memory_files.h"
#include "sim/tracking/pickle_writer.h"

namespace sim {
namespace {

using caching_allocator::BlockInfo;
using caching_allocator::SegmentInfo;
using estimator::Json;

const char* action_name(AllocatorEvent::Action action) {
  switch (action) {
    case AllocatorEvent::ALLOC:
      return "alloc";
    case AllocatorEvent::FREE_REQUESTED:
      return "free_requested";
    case AllocatorEvent::FREE_COMPLETED:
      return "free_completed";
    case AllocatorEvent::SEGMENT_ALLOC:
      return "segment_alloc";
    case AllocatorEvent::SEGMENT_FREE:
      return "segment_free";
    case AllocatorEvent::SEGMENT_MAP:
      return "segment_map";
    case AllocatorEvent::SEGMENT_UNMAP:
      return "segment_unmap";
    case AllocatorEvent::SNAPSHOT:
      return "snapshot";
    case AllocatorEvent::OOM:
      return "oom";
    default:
      break;
  }
  throw std::logic_error("an allocator event without a name");
}

const char* state_name(const BlockInfo& block) {
  if (block.allocated) return "active_allocated";
  return block.active ? "active_pending_free" : "inactive";
}

class HistoryPickle {
 public:
  HistoryPickle(const TrackedRun& tracker, const std::vector<std::string>& phases)
      : tracker_(tracker), phases_(phases), blocks_(tracker.memory().log().all()) {}

  std::string write(const Json& about) && {
    const AllocatorState state = allocator_state();
    for (const Allocation& block : blocks_) {
      if (block.freed_at == kNeverFreed) alive_[block.address] = &block;
    }
    out_.begin_dict();
    out_.key("segments");
    list(state.segments, [&](const SegmentInfo& segment) { write_segment(segment); });
    out_.key("device_traces");
    out_.begin_list();
    out_.begin_item(0);
    list(tracker_.history().steps, [&](const AllocatorStep& step) { write_step(step); });
    out_.end_list(1);
    out_.key("allocator_settings");
    write_json(state.settings.json());
    out_.key("external_annotations");
    write_phases();
    out_.key("onerank");
    write_json(about);
    out_.end_dict();
    return std::move(out_).finish();
  }

 private:
  template <class Items, class Write>
  void list(const Items& items, const Write& write_item) {
    out_.begin_list();
    for (std::size_t i = 0; i < items.size(); ++i) {
      out_.begin_item(i);
      write_item(items[i]);
    }
    out_.end_list(items.size());
  }

  template <class T>
  void field(std::string_view name, const T& value) {
    out_.key(name);
    out_.value(value);
  }

  void write_json(const Json& json) {
    if (json.is_object()) {
      out_.begin_dict();
      for (const auto& item : json.items()) {
        out_.key(item.key());
        write_json(item.value());
      }
      out_.end_dict();
    } else if (json.is_array()) {
      list(json, [&](const Json& item) { write_json(item); });
    } else if (json.is_boolean()) {
      out_.value(json.get<bool>());
    } else if (json.is_number_integer()) {
      out_.value(json.get<int64_t>());
    } else if (json.is_number()) {
      out_.value(json.get<double>());
    } else {
      out_.value(std::string_view(json.get_ref<const std::string&>()));
    }
  }

  void write_segment(const SegmentInfo& segment) {
    out_.begin_dict();
    field("device", int64_t{segment.device});
    field("address", static_cast<int64_t>(segment.address));
    field("total_size", static_cast<int64_t>(segment.total_size));
    field("allocated_size", static_cast<int64_t>(segment.allocated_size));
    field("active_size", static_cast<int64_t>(segment.active_size));
    field("requested_size", static_cast<int64_t>(segment.requested_size));
    field("stream", reinterpret_cast<int64_t>(segment.stream));
    field("segment_type", segment.is_large ? "large" : "small");
    out_.key("segment_pool_id");
    out_.pair(static_cast<int64_t>(segment.owner_private_pool_id.first),
              static_cast<int64_t>(segment.owner_private_pool_id.second));
    field("is_expandable", segment.is_expandable);
    out_.key("frames");
    write_frames(nullptr);
    out_.key("blocks");
    std::size_t address = segment.address;
    list(segment.blocks, [&](const BlockInfo& block) {
      write_block(block, address);
      address += block.size;
    });
    out_.end_dict();
  }

  void write_block(const BlockInfo& block, std::size_t address) {
    out_.begin_dict();
    field("address", static_cast<int64_t>(address));
    field("size", static_cast<int64_t>(block.size));
    field("requested_size", static_cast<int64_t>(block.requested_size));
    field("state", state_name(block));
    out_.key("frames");
    const auto alive = block.allocated ? alive_.find(address) : alive_.end();
    write_frames(alive == alive_.end() ? nullptr : alive->second);
    out_.end_dict();
  }

  void write_step(const AllocatorStep& step) {
    const Allocation* block = step.block == kNoBlock ? nullptr : &blocks_[step.block];
    out_.begin_dict();
    field("action", action_name(step.action));
    field(step.action == AllocatorEvent::OOM ? "device_free" : "addr",
          static_cast<int64_t>(step.address));
    field("size", step.bytes);
    field("stream", step.stream);
    field("time_us", step.time_us);
    field("compile_context", "N/A");
    field("user_metadata", block == nullptr ? std::string() : description(*block));
    out_.key("frames");
    write_frames(block);
    out_.end_dict();
  }

  /// "activation BFloat16 [8192, 1, 4096], micro-batch 2"
  static std::string description(const Allocation& block) {
    std::string text = estimator::to_string(category_of(block));
    if (!block.name.empty()) text += " of " + block.name;
    if (block.is_tensor()) {
      text += fmt::format(" {} [{}]", c10::toString(block.dtype), fmt::join(block.shape, ", "));
    }
    const int64_t micro_batch = block.origin.place.micro_batch;
    if (micro_batch != estimator::kNoMicroBatch)
      text += fmt::format(", micro-batch {}", micro_batch);
    return text;
  }

  /// Innermost first: C++ functions, the operator, the module and those around it, where in the
  /// iteration. A viewer must find name, filename and line in each.
  void write_frames(const Allocation* block) {
    const auto key = block == nullptr ? FramesKey{-1, nullptr, 0, 0, -1} : frames_key(*block);
    const auto known = frames_.find(key);
    if (known != frames_.end()) return out_.recall(known->second);
    std::vector<std::pair<std::string, std::string>> frames;
    if (block != nullptr) frames = frames_of(*block);
    list(frames, [&](const auto& frame) {
      out_.begin_dict();
      field("name", frame.first);
      field("filename", frame.second);
      field("line", int64_t{0});
      out_.end_dict();
    });
    frames_.emplace(key, out_.remember());
  }

  std::vector<std::pair<std::string, std::string>> frames_of(const Allocation& block) const {
    const MemoryOrigin& origin = block.origin;
    const ModuleTree& modules = tracker_.modules();
    std::vector<std::pair<std::string, std::string>> frames;
    for (const std::string& name : tracker_.frames(origin.stack)) frames.emplace_back(name, "C++");
    if (origin.op != nullptr) frames.emplace_back(origin.op->name, "operator");
    ModuleId module = block.owner.value_or(origin.place.module);
    for (; module != kRootModule; module = modules.parent(module)) {
      frames.emplace_back(modules.module(module).path, "module");
    }
    const std::string phase = phase_name(phases_, origin.phase);
    const auto direction = direction_in(phase, origin.place);
    frames.emplace_back(direction ? estimator::to_string(*direction) : phase, phase);
    return frames;
  }

  void write_phases() {
    Json annotations = Json::array();
    for (std::size_t phase = 0; phase < phases_.size(); ++phase) {
      const PhaseTimes& times = tracker_.history().phases[phase];
      for (const auto& [stage, time] :
           {std::pair{"START", times.begin_us}, {"END", times.end_us}}) {
        annotations.push_back(
            {{"name", phases_[phase]}, {"stage", stage}, {"device", 0}, {"time_us", time}});
      }
    }
    write_json(annotations);
  }

  using FramesKey = std::tuple<ModuleId, const OperatorTraits*, int, int32_t, int32_t>;
  static FramesKey frames_key(const Allocation& block) {
    const MemoryOrigin& origin = block.origin;
    return {block.owner.value_or(origin.place.module),
            origin.op,
            static_cast<int>(origin.place.direction),
            origin.phase,
            origin.stack};
  }

  const TrackedRun& tracker_;
  const std::vector<std::string>& phases_;
  const std::vector<Allocation>& blocks_;
  std::map<uint64_t, const Allocation*> alive_;
  std::map<FramesKey, uint32_t> frames_;
  PickleWriter out_;
};

}  // namespace

std::string memory_history_pickle(const TrackedRun& tracker,
                                  const std::vector<std::string>& phases,
                                  const Json& about) {
  return HistoryPickle(tracker, phases).write(about);
}

}  // namespace sim
