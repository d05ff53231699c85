// What a block of a rank's memory is for.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>

#include "estimator/base/enum_names.h"
#include "estimator/base/option.h"

namespace estimator {

/// The first that holds decides, in this order: the four kinds of state, activation, communication,
/// workspace, temporary; but what a library allocates behind an operator is workspace before all.
///
///   parameter        the weights of the model, with the padding of a flat buffer
///   gradient         buffers that gather gradients over micro-batches, with padding, and
///                    TransformerEngine's stand-ins
///   master_weight      fp32 copies of the weights, for the optimizer
///   optimizer_state  moments, momentum and step counters
///   activation       made in the forward of a micro-batch, or in the recompute of a segment, and
///                    held at its end: backward needs it
///   communication    what a collective read, wrote or allocated, and is none of the above; in a
///                    program also flat parameters that were gathered, and a reducer's buckets
///   workspace        outlives the operator that made it and is no operator's result (cuBLAS), or
///                    outlives its phase and is none of the above (tables, masks)
///   temporary        all else: made and freed within an operator, a module or a phase
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
