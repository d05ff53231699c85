// Megatron-LM's ways to spread layers over the pipeline that depend on how many there are: a first
// or last stage with another number of them, and virtual stages by their size.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "estimator/base/json.h"

namespace sim {

/// `--decoder-first-pipeline-num-layers`, `--decoder-last-pipeline-num-layers` and
/// `--num-layers-per-virtual-pipeline-stage`.
class PipelineLayers {
 public:
  void add_to(CLI::App& app);

  bool any_given() const { return !first_.empty() || !last_.empty() || !per_virtual_.empty(); }

  /// Writes parallelism.layers_per_stage: the given numbers, and the other layers spread evenly
  /// over the other stages; or parallelism.virtual_stages: how many of the given size a stage has.
  /// Leaves a tree alone that tells no number of layers or stages: what it lacks is an error of its
  /// own. Throws UserError when the layers cannot be spread so, or the tree says it already.
  void overlay(estimator::Json& tree) const;

 private:
  void overlay_uneven(estimator::Json& tree, int64_t layers, int64_t stages) const;
  void overlay_virtual(estimator::Json& tree, int64_t layers, int64_t stages) const;

  std::string first_;
  std::string last_;
  std::string per_virtual_;
};

}  // namespace sim
