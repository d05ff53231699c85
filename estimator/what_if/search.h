// Search: all layouts of a model on a number of GPUs, composed from executed pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/document_head.h"
#include "estimator/base/option.h"
#include "estimator/compose/composer.h"
#include "estimator/resolve/plan_spec.h"

namespace estimator {

/// An option that the search varies, and its values. What the user gives is not varied.
struct SearchAxis {
  std::string path;
  std::vector<Json> values;
};

/// What the whole execution of a layout gave.
struct ExecutedLayout {
  int64_t allocated_bytes = 0;  ///< by tensors: the most of all ranks
  int64_t peak_bytes = 0;       ///< of the worst rank, with all that is not the allocator's
  Fit outcome = Fit::kDoesNotFit;
  double iteration_seconds = 0;
  double tokens_per_second = 0;
  double mfu = 0;
};

ExecutedLayout executed_layout(const ClusterEstimate& estimate);

/// A layout that the rules allow.
struct Layout {
  PlanEdits edits;  ///< over what was said
  Plan plan;
  std::optional<ComposedPlan> composed = std::nullopt;    ///< empty: it was not composed
  std::optional<ExecutedLayout> executed = std::nullopt;  ///< empty: it was not executed whole

  /// Of a layout that is composed: what its execution gave, where it was executed.
  Fit outcome() const { return executed ? executed->outcome : composed->outcome; }
  int64_t peak_bytes() const { return executed ? executed->peak_bytes : composed->peak_bytes; }
  /// Of a step for each token that it trains, by which layouts of different batches compare.
  double seconds_per_token() const;
};

struct Refusals {
  std::map<std::string, int64_t> counts;  ///< by what is wrong
  int64_t sum() const;
  void add(const Refusals& others);
};

struct Layouts {
  std::vector<Layout> allowed;
  Refusals refused;
};

/// What the search needs to know of a plan before it is complete: the plan of one GPU with one data
/// rank. Throws UserError if the model, the GPU or the batch are wrong or not given.
Plan searched_plan(const PlanSpec& spec);

/// The same with each choice of the listed values that the rules allow, which `listed` says as
/// search_axes() does; never empty. Throws UserError if they allow none.
std::vector<Plan> searched_plans(const PlanSpec& spec, const std::vector<SearchAxis>& listed);

/// GPUs of one machine: what was said, else 8.
int64_t gpus_of_machine(const PlanSpec& spec);

/// The axes of a search for what `spec` leaves open, for a world of `gpus`: tensor ranks up to a
/// machine, pipeline stages and virtual stages, context ranks (2 for sequences of 4,096 tokens, up
/// to 16 from 16,384 on), expert ranks, the ZeRO stages that the framework has, micro-batches of 1
/// to 16 samples, and recompute. `listed` are axes whose values the user gave.
std::vector<SearchAxis> search_axes(const PlanSpec& spec,
                                    int64_t gpus,
                                    const std::vector<SearchAxis>& listed);

/// Equal for layouts of the same search with the same pieces_of(), and made in less time.
std::string quick_pieces_key(const Layout& layout);

/// All layouts of the axes on `gpus` GPUs that the rules allow, with data ranks for what is left of
/// the world. Where the framework has flags for it and `spec` says nothing of them, the reduction
/// of gradients and, with ZeRO, the gathers of parameters overlap with the work, unless the stages
/// would gather one after the other. Nothing is composed yet. `seen`, if given, is called for each
/// combination of values with how many there are.
Layouts allowed_layouts(const PlanSpec& spec,
                        const std::vector<SearchAxis>& axes,
                        int64_t gpus,
                        const std::function<void(int64_t)>& seen = {});

/// The same for search_axes(): anew for each choice of the listed values, of which a model, a batch
/// or a framework decides what the other axes may be.
Layouts searched_layouts(const PlanSpec& spec,
                         const std::vector<SearchAxis>& listed,
                         int64_t gpus,
                         const std::function<void(int64_t)>& seen = {});

}  // namespace estimator
