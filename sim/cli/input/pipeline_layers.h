// Flags of Megatron-LM that divide layers among pipeline stages depending on their number: another
// number of layers on the first or last stage, virtual stages by their size, and a layout.
#pragma once

#include <string>

#include "estimator/base/json.h"
#include "sim/cli/input/cli_fwd.h"

namespace sim {

/// `--decoder-first-pipeline-num-layers`, `--decoder-last-pipeline-num-layers`,
/// `--num-layers-per-virtual-pipeline-stage` and `--pipeline-model-parallel-layout`.
class PipelineLayers {
 public:
  void add_to(CLI::App& app);

  /// As if the flag were given on the command line; other flags do nothing.
  void set(const std::string& flag, const std::string& value);

  bool any_given() const { return !given().empty(); }
  /// The name of a flag that was given; empty if there is none.
  std::string given() const;

  /// Writes parallelism.layers_per_stage, with the given numbers for the first and last stage and
  /// the other layers divided evenly among the other stages; or parallelism.virtual_stages, the
  /// number of virtual stages of the given size on a stage; or both, as the layout has them. Does
  /// not change a tree without a number of layers or stages, because that is reported as an error
  /// elsewhere. Throws UserError when the layers cannot be divided so, when the tree already has
  /// the key, or when another flag is given beside a layout.
  void overlay(estimator::Json& tree) const;

 private:
  void overlay_uneven(estimator::Json& tree, int64_t layers, int64_t stages) const;
  void overlay_virtual(estimator::Json& tree, int64_t layers, int64_t stages) const;
  void overlay_layout(estimator::Json& tree, int64_t layers, int64_t stages) const;
  void refuse_given_twice(const estimator::Json& tree) const;

  std::string first_;
  std::string last_;
  std::string per_virtual_;
  std::string layout_;
};

}  // namespace sim
