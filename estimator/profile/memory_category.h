// What a block of a rank's memory is for.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>

#include "estimator/base/enum_names.h"
#include "estimator/base/option.h"

namespace estimator {

/// A block may fit several categories. The first one that fits counts, in this order: the four
/// kinds of state (parameter to optimizer_state), activation, communication, workspace, temporary.
/// But what a library allocates inside an operator is always workspace.
///
///   parameter        the weights of the model, with the padding of a flat buffer
///   gradient         buffers that sum gradients over micro-batches, with padding, and
///                    TransformerEngine's stand-ins
///   master_weight    fp32 copies of the weights, for the optimizer
///   optimizer_state  moments, momentum and step counters
///   activation       made in the forward of a micro-batch, or in the recompute of a segment, and
///                    still held at its end, because backward needs it; of a program not what then
///                    stays through a whole iteration
///   communication    read, written or allocated by a collective, and none of the above; in a
///                    program also gathered flat parameters, and the buckets of a reducer
///   workspace        lives longer than the operator that made it and is no operator's result
///                    (cuBLAS), or lives longer than its phase and is none of the above (tables,
///                    masks, averages of the weights)
///   temporary        everything else: made and freed within an operator, a module or a phase
enum class MemoryCategory {
  kParameter,
  kGradient,
  kMasterWeight,
  kOptimizerState,
  kActivation,
  kTemporary,
  kCommunication,
  kWorkspace,
};
constexpr std::array<EnumName<MemoryCategory>, 8> enum_names(MemoryCategory) {
  return {{{MemoryCategory::kParameter, "parameter"},
           {MemoryCategory::kGradient, "gradient"},
           {MemoryCategory::kMasterWeight, "master_weight"},
           {MemoryCategory::kOptimizerState, "optimizer_state"},
           {MemoryCategory::kActivation, "activation"},
           {MemoryCategory::kTemporary, "temporary"},
           {MemoryCategory::kCommunication, "communication"},
           {MemoryCategory::kWorkspace, "workspace"}}};
}

/// Bytes of each category.
struct CategoryBytes {
  std::array<int64_t, enum_names(MemoryCategory{}).size()> bytes{};

  int64_t& operator[](MemoryCategory category) { return bytes[static_cast<std::size_t>(category)]; }
  int64_t operator[](MemoryCategory category) const {
    return bytes[static_cast<std::size_t>(category)];
  }
  int64_t sum() const { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }
  bool operator==(const CategoryBytes&) const = default;
};
template <class Visitor>
void visit_fields(Visitor& visit, CategoryBytes& categories) {
  for (const auto& entry : enum_names(MemoryCategory{})) {
    visit(entry.name, categories[entry.value], {"bytes of allocator blocks", kBytes});
  }
}

}  // namespace estimator
