#include "models/pipeline/torch_stage.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace models {

using estimator::MemoryCategory;
using estimator::PipelineStep;

namespace {

constexpr const char* kPipelineModule = "pipeline";

at::Tensor at_step(const std::vector<at::Tensor>& buffers, const PipelineStep& step) {
  return buffers.at(static_cast<std::size_t>(step.micro_batch));
}

}  // namespace

at::Tensor TorchStage::make_batch() const {
  const estimator::Plan& plan = context_.plan;
  const int64_t rows = plan.sequence_length() / plan.parallelism.context;
  return at::empty({plan.micro_batches(), rows, plan.training.micro_batch_size},
                   at::TensorOptions(context_.device).dtype(at::kLong));
}

std::vector<at::Tensor> TorchStage::make_buffers() const {
  const ModuleScope module(context_.observer, kPipelineModule);
  std::vector<at::Tensor> buffers;
  for (int64_t i = 0; i < context_.plan.micro_batches(); ++i) {
    buffers.push_back(at::empty(stage_.hidden_shape(), context_.options()));
    context_.observer.memory_lasts(buffers.back(),
                                   {MemoryCategory::kCommunication, kPipelineModule, ""});
  }
  return buffers;
}

void TorchStage::infer_shapes(int64_t chunk) const {
  const at::NoGradGuard no_grad;
  const at::Tensor input = context_.is_first_piece(chunk)
                               ? at::zeros_like(tokens_.select(0, 0))
                               : at::zeros(stage_.hidden_shape(), context_.options());
  stage_.forward(chunk, input, {});
}

void TorchStage::begin_iteration(int64_t iteration) {
  iteration_ = iteration;
  tokens_ = labels_ = at::Tensor();
  tokens_ = make_batch();
  labels_ = make_batch();
  if (!buffers_.empty()) return;
  buffers_.resize(static_cast<std::size_t>(context_.chunks()));
  for (int64_t chunk = 0; chunk < context_.chunks(); ++chunk) {
    infer_shapes(chunk);
    if (context_.is_first_piece(chunk)) continue;
    buffers_[static_cast<std::size_t>(chunk)].inputs = make_buffers();
  }
  for (int64_t chunk = 0; chunk < context_.chunks(); ++chunk) {
    if (context_.is_last_piece(chunk)) continue;
    buffers_[static_cast<std::size_t>(chunk)].gradients = make_buffers();
  }
}

/// The values are those of mock_micro_batch(), in the memory of the batch.
MicroBatchData TorchStage::data_of(const PipelineStep& step) {
  const bool first = context_.is_first_piece(step.chunk), last = context_.is_last_piece(step.chunk);
  if (!first && !last) return {};
  MicroBatchData data = mock_micro_batch(context_, iteration_, step.micro_batch);
  const auto in_batch = [&](at::Tensor& values, const at::Tensor& batch) {
    if (!values.defined()) return;
    at::Tensor own = batch.select(0, step.micro_batch).variable_data();  // a version of its own
    values = own.copy_(values);
  };
  in_batch(data.tokens, tokens_);
  in_batch(data.labels, labels_);
  return data;
}

at::Tensor TorchStage::input_buffer(const PipelineStep& step) const {
  return at_step(buffers_.at(static_cast<std::size_t>(step.chunk)).inputs, step);
}

at::Tensor TorchStage::gradient_buffer(const PipelineStep& step) const {
  return at_step(buffers_.at(static_cast<std::size_t>(step.chunk)).gradients, step);
}

void TorchStage::forward_ended(const ChunkOutput& output) {
  if (!holds_variables()) return;
  last_output_ = output.logits.defined() ? output.logits : output.output.detach();
}

void TorchStage::backward_started() {
  const bool is_gpipe =
      context_.plan.parallelism.pipeline_schedule == estimator::ScheduleKind::kGpipe;
  if (is_gpipe) last_input_gradient_ = at::Tensor();
}

void TorchStage::backward_ended(const at::Tensor& input_gradient) {
  if (holds_variables()) last_input_gradient_ = input_gradient;
}

void TorchStage::backwards_ended() { last_output_ = last_input_gradient_ = at::Tensor(); }

}  // namespace models
