// Scales of 8 bits that follow from the largest elements of earlier micro-batches: the recipe
// delayed, whose state is FP8GlobalStateManager in transformer_engine/pytorch/quantization.py.
//
// A module of TransformerEngine has a scale and a largest element for each tensor of its products:
// three of a product's forward, two of its backward. Ranks agree on those of all modules of a stage
// in one call: on the forward's when the layers of a chunk have run, and when a checkpoint has run
// again; on the backward's after the backward of the module that came first in a forward. Of a
// checkpoint that runs again these are its linear layers up to the first norm or grouped layer, and
// that.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "models/shard/communicator.h"
#include "models/shard/observer.h"

namespace models {

class DelayedScales {
 public:
  /// `group` may be null.
  DelayedScales(std::shared_ptr<Communicator> group, at::Device device, Observer& observer);

  /// Around layers in 8 bits, as TransformerEngine's autocast; the outermost calls count.
  void begin_layers();
  void end_layers();

  /// A checkpoint's forward (activation_recompute_forward in
  /// transformer_engine/pytorch/distributed.py): that which will run again, and that which does.
  enum class Checkpoint { kNone, kForward, kAgain };
  void begin_checkpoint(Checkpoint which);
  void end_checkpoint(Checkpoint which);

  /// Of a module whose backward will come: whether it comes first, so that ranks agree after its
  /// backward. `leaves_it`: the next one does, too, where a checkpoint runs again.
  bool comes_first(bool leaves_it);

  /// Of the tensors of a module in one pass.
  struct Tensors {
    at::Tensor scales, largest;

    Tensors copy() const;
    void become(const Tensors& others) const;
  };
  /// Of its forward and its backward.
  using OfModule = std::array<Tensors, 2>;

 private:
  friend class ScaledModule;
  friend struct AgreeFunction;
  enum Pass : std::size_t { kForward, kBackward };

  bool in_layers() const { return depth_ > 0; }
  OfModule add_module(int64_t products);
  void agree(Pass pass) const;

  std::shared_ptr<Communicator> group_;
  at::Device device_;
  Observer& observer_;
  std::vector<OfModule> modules_;
  std::vector<bool> outer_;          ///< `is_first_` of the scopes around this one
  std::deque<bool> of_checkpoints_;  ///< the same of forwards that will run again
  int64_t depth_ = 0;
  bool is_first_ = false;  ///< no module has run yet
  Checkpoint checkpoint_ = Checkpoint::kNone;
};

/// The input of a module that is none of the shard's own functions, after whose backward the ranks
/// agree.
at::Tensor agreed_on_after(const at::Tensor& input, const std::shared_ptr<DelayedScales>& scales);

/// Runs layers in 8 bits; without `scales` nothing more.
template <class Run>
auto in_layers(DelayedScales* scales, const Run& run) {
  if (scales == nullptr) return run();
  scales->begin_layers();
  auto result = run();
  scales->end_layers();
  return result;
}

/// The same of a checkpoint.
template <class Run>
auto in_checkpoint(DelayedScales* scales, DelayedScales::Checkpoint which, const Run& run) {
  if (scales == nullptr) return run();
  scales->begin_checkpoint(which);
  auto result = run();
  scales->end_checkpoint(which);
  return result;
}

/// A module with such scales; does nothing if `scales` is null, or outside of layers in 8 bits.
class ScaledModule {
 public:
  ScaledModule(std::shared_ptr<DelayedScales> scales, int64_t products);

  /// Around its forward: prepare_forward() and end_forward() in
  /// transformer_engine/pytorch/module/base.py.
  void begin();
  void end();
  /// See DelayedScales.
  bool comes_first(bool leaves_it) const { return runs() && scales_->comes_first(leaves_it); }
  void agree_after_backward() const;

 private:
  using Tensors = DelayedScales::Tensors;
  bool runs() const { return scales_ && scales_->in_layers(); }
  bool runs_again() const;

  std::shared_ptr<DelayedScales> scales_;
  int64_t products_;
  DelayedScales::OfModule own_;
  std::deque<Tensors> of_checkpoints_;  ///< as they were when checkpoints ran
  Tensors latest_;                      ///< kept while a checkpoint runs again
};

}  // namespace models
