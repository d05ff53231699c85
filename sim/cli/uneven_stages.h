// Megatron-LM's way to say that the first or the last pipeline stage has another number of layers.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "estimator/fields.h"

namespace sim {

/// `--decoder-first-pipeline-num-layers` and `--decoder-last-pipeline-num-layers`.
class UnevenStages {
 public:
  void add_to(CLI::App& app);

  bool any_given() const { return !first_.empty() || !last_.empty(); }

  /// Writes parallelism.layers_per_stage: the given numbers, and the other layers spread evenly
  /// over the other stages. Leaves a tree alone that tells no number of layers or stages: what it
  /// lacks is an error of its own. Throws UserError when the layers cannot be spread so, or the
  /// tree lists them already.
  void overlay(estimator::Json& tree) const;

 private:
  std::string first_;
  std::string last_;
};

}  // namespace sim
