// Joins several gradient buffers into one DataParallel: parameters of experts are reduced over
// other ranks than the rest, in buffers of their own (buffers and expert_parallel_buffers of
// Megatron-LM's DistributedDataParallel). And the model chunks of a stage under FSDP2, each of
// which is a root of its own.
#pragma once

#include <memory>
#include <vector>

#include "models/data_parallel/data_parallel.h"

namespace models {

class JoinedDataParallel final : public DataParallel {
 public:
  /// `parts` has at least one buffer; they are reduced in this order. `chained` says whether
  /// each of two optimizers gathers all parameters after its step.
  JoinedDataParallel(std::vector<std::unique_ptr<DataParallel>> parts, bool chained);

  void begin_iteration() override;
  void start_last_micro_batch(int64_t chunk) override;
  void start_backward() override;
  void finish_backward() override;
  void finish_chunk(int64_t chunk) override;
  void start_gathering_chunk(int64_t chunk) override;
  void free_chunk(int64_t chunk) override;
  void start_reducing_chunk(int64_t chunk) override;
  void start_reduction() override;
  void finish_reduction() override;
  void gather_parameters() override;
  bool gathers_after_each_optimizer() const override { return chained_; }
  void start_gathers(int64_t chunk, bool all) override;
  void before_unit(int64_t unit) override;
  void finish_gathers() override;
  std::vector<OwnedPiece> owned_pieces() const override;
  std::vector<OptimizerPiece> optimizer_pieces() const override;
  std::vector<at::Tensor> step_gradients(c10::ScalarType type) override;
  bool has_flat_gradients() const override { return parts_.front()->has_flat_gradients(); }
  c10::ScalarType gradient_type() const override { return parts_.front()->gradient_type(); }
  int64_t parameter_padding() const override;
  int64_t gradient_padding() const override;
  Observer& observer() const override { return parts_.front()->observer(); }

 private:
  std::vector<std::unique_ptr<DataParallel>> parts_;
  bool chained_;
};

}  // namespace models
