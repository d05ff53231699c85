// What a search found, as it is reported and written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/document_head.h"
#include "estimator/base/option.h"
#include "estimator/what_if/search.h"

namespace estimator {

/// One layout as it is reported: what was composed, and what its whole execution gave.
struct FoundLayout {
  std::string flags;
  std::string command;
  int64_t gpus = 0;
  Fit outcome = Fit::kDoesNotFit;
  int64_t allocated_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t headroom_bytes = 0;
  int64_t capacity_bytes = 0;
  int64_t kept_free_bytes = 0;
  double iteration_seconds = 0;
  double tokens_per_second = 0;
  double mfu = 0;
  std::optional<double> usd_per_million_tokens;
  std::optional<int64_t> executed_allocated_bytes;
  std::optional<int64_t> executed_peak_bytes;
  std::optional<double> executed_iteration_seconds;
  std::optional<Fit> executed_outcome;
};
template <class Visitor>
void visit_fields(Visitor& visit, FoundLayout& found) {
  visit("flags", found.flags, "what to type over what was given");
  visit("command", found.command, "what to type to estimate it");
  visit("gpus", found.gpus, "of the cluster");
  visit("outcome", found.outcome, "the verdict of the composed memory");
  visit("allocated_bytes", found.allocated_bytes, "composed, by tensors: the most of all stages");
  visit("peak_bytes", found.peak_bytes, "composed, of the worst stage");
  visit("headroom_bytes", found.headroom_bytes, "composed, what is left");
  visit("capacity_bytes", found.capacity_bytes, "what the GPU has");
  visit("kept_free_bytes", found.kept_free_bytes, "of which it is to leave so much (--headroom)");
  visit("iteration_seconds", found.iteration_seconds, "composed, one optimizer step");
  visit("tokens_per_second", found.tokens_per_second, "of the cluster; executed, where it was");
  visit("mfu", found.mfu, "model FLOPs over the dense peak; executed, where it was");
  visit("usd_per_million_tokens", found.usd_per_million_tokens, "where a price is known");
  visit("executed_allocated_bytes",
        found.executed_allocated_bytes,
        "where the layout was executed whole");
  visit("executed_peak_bytes", found.executed_peak_bytes, "the same");
  visit("executed_iteration_seconds", found.executed_iteration_seconds, "the same");
  visit("executed_outcome", found.executed_outcome, "the same");
}

/// Why the rules do not allow some layouts.
struct RefusalCount {
  std::string what;
  int64_t layouts = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, RefusalCount& refusal) {
  visit("what", refusal.what, "the rule");
  visit("layouts", refusal.layouts, "that it refuses first");
}

/// The search on one number of GPUs. Of a layout that was executed whole, that counts.
struct WorldSearch {
  int64_t gpus = 0;
  int64_t layouts = 0;
  int64_t refused = 0;
  std::vector<RefusalCount> refusals;  ///< the most frequent first
  int64_t fits = 0;
  int64_t too_close = 0;
  /// The layout that needs least memory: why not fewer GPUs.
  std::optional<FoundLayout> leanest;
};
template <class Visitor>
void visit_fields(Visitor& visit, WorldSearch& world) {
  visit("gpus", world.gpus, "how many");
  visit("layouts", world.layouts, "combinations of the axes");
  visit("refused", world.refused, "that the rules do not allow");
  visit("refusals", world.refusals, "why, the most frequent first");
  visit("fits", world.fits, "that surely fit");
  visit("too_close", world.too_close, "that are too close to call");
  visit("leanest", world.leanest, "the one that needs least memory");
}

struct Search {
  DocumentHead head{1, "search"};
  int64_t capacity_bytes = 0;
  bool interrupted = false;
  int64_t layouts_composed = 0;
  int64_t layouts_too_large = 0;
  int64_t layouts_hopeless = 0;
  int64_t layouts_too_full = 0;
  int64_t layouts_slower = 0;
  int64_t pieces_run = 0;
  double execute_seconds = 0;
  double compose_seconds = 0;
  std::vector<WorldSearch> worlds;
  std::optional<int64_t> fewest_gpus;
  std::vector<FoundLayout> best;
  int64_t faster_untried = 0;
  std::vector<FoundLayout> pareto;
  std::vector<FoundLayout> checked;
};
template <class Visitor>
void visit_fields(Visitor& visit, Search& search) {
  visit_head(visit, search.head);
  visit("capacity_bytes", search.capacity_bytes, "what the largest GPU of the search has");
  visit("interrupted", search.interrupted, "whether it was ended before all layouts were composed");
  visit("layouts_composed", search.layouts_composed, "of those that the rules allow");
  visit("layouts_too_large",
        search.layouts_too_large,
        "of which the model's state alone is larger than a GPU");
  visit("layouts_hopeless",
        search.layouts_hopeless,
        "that differ from layouts that do not fit in what needs still more memory");
  visit("layouts_too_full",
        search.layouts_too_full,
        "that were not composed, because state and activations are larger than a GPU");
  visit("layouts_slower",
        search.layouts_slower,
        "that were not composed, because they are surely slower than the best");
  visit("pieces_run", search.pieces_run, "stages that were executed to compose layouts from");
  visit("execute_seconds", search.execute_seconds, "that this took");
  visit("compose_seconds", search.compose_seconds, "that composing all layouts took");
  visit("worlds", search.worlds, "each number of GPUs");
  visit("fewest_gpus",
        search.fewest_gpus,
        "with a layout that fits when it is executed whole; none: there is none");
  visit("best", search.best, "the fastest that were executed whole and fit");
  visit("faster_untried",
        search.faster_untried,
        "layouts that may fit and be faster than the last of these, but were not executed");
  visit("pareto",
        search.pareto,
        "composed layouts for which no other is at least as good in tokens/s, headroom, GPUs and "
        "cost");
  visit("checked", search.checked, "layouts at random that were executed whole too");
}

/// Those of which no other is at least as good in all of tokens/s, headroom, GPUs and cost, and
/// better in one; the fastest first.
std::vector<FoundLayout> pareto_front(std::vector<FoundLayout> layouts);

/// The layout in words of the report, from what was composed, which it must be. `usd_per_gpu_hour`
/// may be empty.
FoundLayout found_layout(const Layout& layout, std::optional<double> usd_per_gpu_hour);

/// What its whole execution gave, where it was executed.
void add_executed(const Layout& layout, FoundLayout& found);

/// The counts of one number of GPUs, without the leanest layout.
WorldSearch world_search(int64_t gpus, const Layouts& layouts);

/// The layout that needs least memory; null if none was composed.
const Layout* leanest_of(const Layouts& layouts);

/// Whether a layout fits that was executed whole.
bool holds(const Layouts& layouts);

}  // namespace estimator
