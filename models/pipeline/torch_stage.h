// What a stage of torch.distributed.pipelining holds beside activations and outputs, as TorchTitan
// uses it (stage.py and schedules.py of torch 2.11, train.py of torchtitan v0.2.2):
//   buffers    for each micro-batch of each chunk one for the input that it receives, and one
//              for the gradient of its output; they are made in the first step and stay
//              (_prepare_forward_infra, _create_grad_recv_info)
//   the batch  tokens and labels of all micro-batches of a step, on every stage
//              (forward_backward_step)
//   logits     until their backward is over (backward_one_chunk)
//   variables  of _step_microbatches() in 1F1B and GPipe: the last output, or the last logits,
//              until the next forward has ended; and the gradient that the last backward made for
//              the stage before, in 1F1B until the next backward has ended
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "estimator/schedule/pipeline_schedule.h"
#include "models/pipeline/mock_data.h"
#include "models/pipeline/stage.h"
#include "models/shard/shard_context.h"

namespace models {

class TorchStage {
 public:
  TorchStage(ShardContext& context, const Stage& stage) : context_(context), stage_(stage) {}

  /// Makes the step's batch and, in the first step, the buffers. Before those of a chunk it runs a
  /// forward of one micro-batch without gradients, which says what shapes there are.
  void begin_iteration(int64_t iteration);
  MicroBatchData data_of(const estimator::PipelineStep& step);
  at::Tensor input_buffer(const estimator::PipelineStep& step) const;
  at::Tensor gradient_buffer(const estimator::PipelineStep& step) const;

  void forward_ended(const ChunkOutput& output);
  void backward_started();
  /// `input_gradient` is undefined on the first piece.
  void backward_ended(const at::Tensor& input_gradient);
  void backwards_ended();

 private:
  struct ChunkBuffers {
    std::vector<at::Tensor> inputs, gradients;  ///< by micro-batch; empty at the model's ends
  };

  void infer_shapes(int64_t chunk) const;
  std::vector<at::Tensor> make_buffers() const;
  at::Tensor make_batch() const;
  bool holds_variables() const { return context_.chunks() == 1; }

  ShardContext& context_;
  const Stage& stage_;
  int64_t iteration_ = 0;
  std::vector<ChunkBuffers> buffers_;  ///< by chunk
  at::Tensor tokens_, labels_;         ///< [micro-batches, s/c, b]
  at::Tensor last_output_, last_input_gradient_;
};

}  // namespace models
