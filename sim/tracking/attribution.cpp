#include "sim/tracking/attribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string_view>

namespace sim {
namespace {

using estimator::MemoryCategory;
using estimator::ModuleRecord;
using estimator::PeakAllocation;

ModuleId owner_of(const Allocation& block) {
  return block.owner.value_or(block.origin.place.module);
}

PeakAllocation row_of(const Allocation& block,
                      const TrackedRun& tracker,
                      const std::vector<std::string>& phases) {
  const ModuleTree& modules = tracker.modules();
  const MemoryOrigin& origin = block.origin;
  PeakAllocation row{.category = category_of(block),
                     .bytes = block.bytes,
                     .requested_bytes = block.requested_bytes,
                     .name = block.name,
                     .module = modules.module(owner_of(block)).path,
                     .operator_name = origin.op == nullptr ? "" : origin.op->name,
                     .phase = phase_name(phases, origin.phase),
                     .direction = direction_in(phase_name(phases, origin.phase), origin.place),
                     .address = static_cast<int64_t>(block.address),
                     .stream = block.stream};
  if (block.is_tensor()) {
    row.shape = block.shape;
    row.dtype = c10::toString(block.dtype);
  }
  if (origin.place.micro_batch != estimator::kNoMicroBatch) {
    row.micro_batch = origin.place.micro_batch;
  }
  if (origin.stack >= 0) row.frames = tracker.frames(origin.stack);
  return row;
}

/// Adds `bytes` to a module and to all that it is in.
void add_upwards(const ModuleTree& tree,
                 std::vector<ModuleRecord>& records,
                 ModuleId module,
                 int64_t ModuleRecord::*field,
                 int64_t bytes) {
  for (; module != kRootModule; module = tree.parent(module)) records[module].*field += bytes;
}

/// The innermost module around `name` that a run has entered.
ModuleId module_around(const std::map<std::string_view, ModuleId>& ids, std::string_view name) {
  for (size_t dot = name.rfind('.'); dot != name.npos; dot = name.rfind('.')) {
    name = name.substr(0, dot);
    if (const auto known = ids.find(name); known != ids.end()) return known->second;
  }
  return kRootModule;
}

void add_parameters(const ModuleTree& tree,
                    const estimator::ParametersRecord& parameters,
                    std::vector<ModuleRecord>& records) {
  std::map<std::string_view, ModuleId> ids;
  for (ModuleId id = 0; id < tree.size(); ++id) ids.emplace(tree.module(id).path, id);
  for (const estimator::ParameterRecord& parameter : parameters.tensors) {
    const ModuleId module = module_around(ids, parameter.name);
    add_upwards(tree, records, module, &ModuleRecord::parameter_bytes, parameter.bytes);
  }
}

/// Children have larger ids than their parents, so one pass from the end takes peaks to the top.
void add_peaks(const ModuleTree& tree,
               const ModulePeaks& peaks,
               std::vector<ModuleRecord>& records) {
  for (ModuleId id = tree.size() - 1; id >= 0; --id) {
    ModuleRecord& record = records[id];
    const ModulePeaks::Bytes own = peaks.of(id);
    record.forward_peak_bytes = std::max(record.forward_peak_bytes, own.forward);
    record.backward_peak_bytes = std::max(record.backward_peak_bytes, own.backward);
    ModuleRecord& parent = records[tree.parent(id)];
    parent.forward_peak_bytes = std::max(parent.forward_peak_bytes, record.forward_peak_bytes);
    parent.backward_peak_bytes = std::max(parent.backward_peak_bytes, record.backward_peak_bytes);
  }
}

/// The modules below `parent`, each followed by its own.
void append_below(const std::vector<std::vector<ModuleId>>& children,
                  ModuleId parent,
                  std::vector<ModuleId>& order) {
  for (const ModuleId child : children[parent]) {
    order.push_back(child);
    append_below(children, child, order);
  }
}

std::vector<ModuleId> in_model_order(const ModuleTree& tree) {
  std::vector<std::vector<ModuleId>> children(tree.size());
  for (ModuleId id = 1; id < tree.size(); ++id) children[tree.parent(id)].push_back(id);
  std::vector<ModuleId> order;
  append_below(children, kRootModule, order);
  return order;
}

bool has_memory(const ModuleRecord& record) {
  return record.parameter_bytes != 0 || record.activation_bytes_at_peak != 0 ||
         record.forward_peak_bytes != 0 || record.backward_peak_bytes != 0;
}

}  // namespace

std::string phase_name(const std::vector<std::string>& phases, int32_t phase) {
  return phase == kNoPhase ? "" : phases.at(phase);
}

std::optional<estimator::Direction> direction_in(const std::string& phase, const Place& place) {
  if (!phase.starts_with("iteration_")) return std::nullopt;
  return place.direction;
}

std::vector<PeakAllocation> peak_allocations(const TrackedRun& tracker,
                                             const std::vector<std::string>& phases) {
  std::vector<PeakAllocation> rows;
  for (const Allocation* block : tracker.memory().log().at_peak()) {
    rows.push_back(row_of(*block, tracker, phases));
  }
  if (!rows.empty()) rows.back().made_the_peak = true;
  return rows;
}

estimator::PeakRecord largest_peak(const std::vector<estimator::PhaseRecord>& phases) {
  estimator::PeakRecord peak;
  for (const estimator::PhaseRecord& phase : phases) {
    peak.reserved_bytes = std::max(peak.reserved_bytes, phase.peak.reserved_bytes);
    if (phase.peak.allocated_bytes < peak.allocated_bytes) continue;
    peak.allocated_bytes = phase.peak.allocated_bytes;
    peak.phase = phase.name;
  }
  return peak;
}

void describe_peak(const std::vector<PeakAllocation>& allocations, estimator::PeakRecord& peak) {
  if (allocations.empty()) return;
  const PeakAllocation& last = allocations.back();
  peak.phase = last.phase;
  peak.module = last.module;
  peak.operator_name = last.operator_name;
  peak.direction = last.direction;
  peak.micro_batch = last.micro_batch;
  peak.categories = bytes_by_category(allocations);
}

void check_attribution(const estimator::PeakRecord& peak) {
  if (!peak.categories || peak.categories->sum() == peak.allocated_bytes) return;
  throw std::logic_error(fmt::format(
      "the peak of {} bytes is attributed as {}", peak.allocated_bytes, peak.categories->sum()));
}

estimator::CategoryBytes bytes_by_category(const std::vector<PeakAllocation>& allocations) {
  estimator::CategoryBytes bytes;
  for (const PeakAllocation& allocation : allocations) {
    bytes[allocation.category] += allocation.bytes;
  }
  return bytes;
}

std::vector<ModuleRecord> module_records(const TrackedRun& tracker,
                                         const estimator::ParametersRecord& parameters) {
  const ModuleTree& tree = tracker.modules();
  std::vector<ModuleRecord> records(tree.size());
  for (ModuleId id = 0; id < tree.size(); ++id) records[id].path = tree.module(id).path;
  add_parameters(tree, parameters, records);
  add_peaks(tree, tracker.memory().module_peaks(), records);
  for (const Allocation* block : tracker.memory().log().at_peak()) {
    if (category_of(*block) != MemoryCategory::kActivation) continue;
    add_upwards(
        tree, records, owner_of(*block), &ModuleRecord::activation_bytes_at_peak, block->bytes);
  }
  std::vector<ModuleRecord> with_memory;
  for (const ModuleId id : in_model_order(tree)) {
    if (has_memory(records[id])) with_memory.push_back(std::move(records[id]));
  }
  return with_memory;
}

}  // namespace sim
