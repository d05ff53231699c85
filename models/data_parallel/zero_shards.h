// ZeRO stage 3 of DeepSpeed: each data rank keeps a part of every parameter, cut along its
// flattened elements, in its own 16-bit type, and fp32 copies of these parts. zero_gathers.h says
// when whole parameters are there.
//
// Gradients are copied into a buffer (the bucket) as autograd makes them. A full bucket is
// reduce-scattered, and the parts are added to flat gradients, in the type of the parameters.
//
// As DeepSpeedZeroOptimizer_Stage3 in deepspeed/runtime/zero/stage3.py of v0.18.3, with its
// defaults contiguous_gradients and reduce_scatter, and a model that was made under zero.Init.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "models/data_parallel/data_parallel.h"
#include "models/data_parallel/zero_gathers.h"
#include "models/shard/module_runner.h"

namespace models {

struct ZeroShardsOptions {
  ZeroGathersOptions gathers;
  int64_t bucket_elements = 0;     ///< reduce_bucket_size
  int64_t sub_group_elements = 0;  ///< sub_group_size: of a rank's parts, updated at once
  bool checks_overflow = false;    ///< look for infinite gradients before a step (fp16)
  bool device_computes = true;     ///< whether parts have values that must be kept
};

/// The number of parameters in each sub-group: it is closed when the parts have so many elements
/// (_create_fp16_sub_groups). Pure arithmetic.
std::vector<std::size_t> sub_groups(const std::vector<int64_t>& parts, int64_t elements);

class ZeroShards final : public DataParallel, public ModuleRunner {
 public:
  explicit ZeroShards(ZeroShardsOptions options);
  ZeroShards(const ZeroShards&) = delete;
  ZeroShards& operator=(const ZeroShards&) = delete;

  /// Moves the parts of the parameters of a built model into one flat tensor, in which those of
  /// each of the optimizer's groups lie together.
  void set_parameters(const ParameterList& parameters, const std::vector<ParameterList>& groups);

  at::Tensor run(const void* module,
                 const ParameterList& parameters,
                 const at::Tensor& input,
                 const Body& body) override;

  void begin_iteration() override;
  void start_last_micro_batch(int64_t /*chunk*/) override {}
  void start_forward() override { gathers_.start_forward(); }
  void start_backward() override {}
  void finish_backward() override;
  void finish_reduction() override {}
  void gather_parameters() override;

  std::vector<OwnedPiece> owned_pieces() const override;
  /// One for each sub-group.
  std::vector<OptimizerPiece> optimizer_pieces() const override;
  std::vector<at::Tensor> step_gradients(c10::ScalarType type) override;
  bool has_flat_gradients() const override { return false; }
  c10::ScalarType gradient_type() const override { return flat_.scalar_type(); }
  int64_t parameter_padding() const override;
  int64_t gradient_padding() const override { return parameter_padding(); }
  Observer& observer() const override { return options_.gathers.observer; }

 private:
  friend struct ModuleBackwardFunction;

  struct Slot {
    Parameter* parameter = nullptr;
    int64_t begin = 0;  ///< of its part in the flat tensors
  };

  void make_buffers();
  void take(std::size_t number);
  void reduce_bucket();
  void reduce_and_add();
  std::vector<at::Tensor> interleaved() const;
  void add(const Slot& slot, const at::Tensor& part);
  void place(const std::vector<ParameterList>& groups);
  at::Tensor part_of(const at::Tensor& flat, const Slot& slot) const;
  int64_t ranks() const { return group_size(options_.gathers.data_group); }

  ZeroShardsOptions options_;
  ZeroGathers gathers_;
  std::optional<SideStream> reductions_;
  std::vector<Slot> slots_;  ///< in the order of the model
  /// What is updated at once: numbers of slots, which lie together.
  std::vector<std::vector<std::size_t>> sub_groups_;
  at::Tensor flat_;       ///< the parts of all parameters
  at::Tensor bucket_;     ///< [bucket_elements]
  at::Tensor gradients_;  ///< as flat_
  std::vector<std::size_t> in_bucket_;
  int64_t elements_in_bucket_ = 0;
  at::Tensor norm_;    ///< of the step, which the host reads at its end
  bool adds_ = false;  ///< this is not the first micro-batch of the step
};

}  // namespace models
