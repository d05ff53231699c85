#include "models/pipeline/trainer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <torch/csrc/autograd/engine.h>

#include <algorithm>

#include "estimator/plan/cuda_graphs.h"
#include "estimator/plan/megatron_core.h"
#include "estimator/schedule/active_chunks.h"
#include "models/data_parallel/finite_check.h"
#include "models/pipeline/in_flight.h"
#include "models/pipeline/message_order.h"
#include "models/pipeline/mock_data.h"
#include "models/pipeline/stage_gradients.h"
#include "models/shard/quantized_parameter.h"

namespace models {

using estimator::Direction;
using estimator::StepKind;

namespace {

/// What is kept of a stage's output until its backward.
at::Tensor kept_part(const at::Tensor& output, const ShardContext& context) {
  switch (context.framework().stage_outputs) {
    case estimator::StageOutputs::kFreed:
      return {};
    case estimator::StageOutputs::kKept:
      return output;
    case estimator::StageOutputs::kPartitioned:
      break;
  }
  if (context.tensor_size() == 1) return output;
  return output.detach().view(-1).chunk(context.tensor_size())[context.coordinate.tensor].clone();
}

/// Megatron-LM gives the mask to layers and to attention that are recomputed, which keep all that
/// they are given (_checkpointed_forward in transformer_block.py, _checkpointed_attention_forward
/// in attention.py).
at::Tensor kept_mask(const MicroBatchData& data, const ShardContext& context) {
  const estimator::Plan& plan = context.plan;
  const bool again = plan.training.recompute == estimator::Recompute::kFull ||
                     estimator::recomputes(plan, estimator::RecomputeModule::kCoreAttention);
  return again ? data.mask : at::Tensor();
}

/// torch.cuda.empty_cache()
void give_back_free_memory(const at::Device& device) {
  if (device.is_cuda()) c10::getDeviceAllocator(at::kCUDA)->emptyCache();
}

}  // namespace

Trainer::Trainer(ShardContext context, int64_t micro_batches, OptimizerSettings settings)
    : context_(std::move(context)),
      micro_batches_(micro_batches),
      settings_(settings),
      schedule_variables_({.holds = context_.framework().schedule_variables,
                           .interleaved = context_.chunks() > 1,
                           .overlaps_messages = context_.chunks() > 1 &&
                                                context_.plan.parallelism.overlap_p2p_communication,
                           .overlaps_warm_up = context_.plan.parallelism.overlap_p2p_warmup_flush,
                           .chunks = context_.chunks()}) {}
Trainer::~Trainer() = default;

void Trainer::forward_backward(int64_t iteration) {
  if (context_.stash) context_.stash->begin_iteration();
  if (!estimator::captures_iteration(context_.plan.training)) return run_schedule(iteration);
  if (!graph_pool_) graph_pool_.emplace(context_.device);
  graph_pool_->wait_for_current();
  {
    const SideStream::Scope in_graph(*graph_pool_);
    run_schedule(iteration);
  }
  graph_pool_->join();
}

void Trainer::run_schedule(int64_t iteration) {
  stage_->parameters().begin_iteration();
  data_parallel_->begin_iteration();
  loss_sum_ = at::Tensor();
  if (torch_stage_) torch_stage_->begin_iteration(iteration);
  estimator::ScheduleShape shape = schedule_shape(context_.plan);
  shape.micro_batches = micro_batches_;
  const auto steps = stage_steps(shape, context_.coordinate.pipeline);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const estimator::PipelineStep& step = steps[i];
    if (context_.plan.parallelism.overlap_moe_expert_parallel_comm) {
      i += run_combined(iteration, steps, i) - 1;
      continue;
    }
    if (torch_stage_) change_active_chunks(steps, i);
    receive_before(steps, i);
    if (step.kind == estimator::StepKind::kForward) {
      start_gathers_before(steps, i);
      forward(iteration, step, is_paired(steps, i));
    } else {
      start_reducing_in(step);
      backward(step);
    }
    receive_ahead(steps, i);
    if (torch_stage_) finish_chunk_after(step);
  }
  finish_sending();
  finish_deferred_gradients();
  reduce_gradients();
  not_reduced_.clear();
  schedule_variables_.iteration_ended();
  if (torch_stage_) torch_stage_->backwards_ended();
  active_chunks_.clear();
}

/// _add_unshard_reshard() in schedules.py: the chunks of the next steps, at most three, are
/// gathered. Schedules with one chunk do not ask for it.
void Trainer::change_active_chunks(const Steps& steps, std::size_t i) {
  if (context_.chunks() == 1) return;
  const std::vector<int64_t> next =
      next_chunks(steps, i, static_cast<std::size_t>(estimator::kMostActiveChunks));
  const auto is_in = [](const std::vector<int64_t>& chunks, int64_t chunk) {
    return std::find(chunks.begin(), chunks.end(), chunk) != chunks.end();
  };
  for (const int64_t chunk : active_chunks_) {
    if (!is_in(next, chunk)) data_parallel_->free_chunk(chunk);
  }
  for (const int64_t chunk : next) {
    if (!is_in(active_chunks_, chunk)) data_parallel_->start_gathering_chunk(chunk);
  }
  active_chunks_ = next;
}

/// Where there is one chunk, the variables of the schedule are gone then.
void Trainer::finish_chunk_after(const estimator::PipelineStep& step) {
  if (step.kind != StepKind::kBackward || step.micro_batch != micro_batches_ - 1) return;
  if (context_.chunks() == 1) finish_sending();
  const DirectionScope direction(context_.observer, Direction::kReduceGradients);
  data_parallel_->finish_chunk(step.chunk);
}

/// As forward_backward_pipelining_with_interleaving in Megatron-LM's schedules.py: those of the
/// first two chunks as the step begins; those of each later one when the last stage begins the
/// chunk before it, which is as many forwards ahead as there are stages before this one.
void Trainer::start_gathers_before(const Steps& steps, std::size_t i) {
  const estimator::GatherStart start = estimator::gather_start(context_.plan);
  if (start == estimator::GatherStart::kAtFirstUse) return;
  const bool all = start == estimator::GatherStart::kAllWithStep;
  if (i == 0) data_parallel_->start_gathers(0, all);
  if (!all) return;
  if (i == 0) data_parallel_->start_gathers(1, all);
  int64_t ahead = context_.coordinate.pipeline;
  const auto at = std::find_if(
      steps.begin() + static_cast<std::ptrdiff_t>(i), steps.end(), [&](const auto& step) {
        return step.kind == estimator::StepKind::kForward && ahead-- == 0;
      });
  if (at != steps.end() && at->micro_batch == 0 && at->chunk > 0) {
    data_parallel_->start_gathers(at->chunk + 1, all);
  }
}

int64_t Trainer::forward_number(const estimator::PipelineStep& step) const {
  return step.chunk * micro_batches_ + step.micro_batch;
}

/// Activations and gradients may travel between the same two stages; the direction tells them
/// apart.
Trainer::PendingMessage Trainer::start_receiving(const estimator::PipelineStep& step) {
  const ModuleScope module(context_.observer, "pipeline");
  const bool forward = step.kind == StepKind::kForward;
  const int64_t from_piece = context_.piece(step.chunk) + (forward ? -1 : 1);
  at::Tensor tensor = receive_buffer(step);
  return {.tensor = tensor,
          .call = context_.groups.pipeline->start_recv(
              tensor,
              from_piece % context_.stages(),
              static_cast<int>(forward ? Direction::kForward : Direction::kBackward))};
}

at::Tensor Trainer::receive_buffer(const estimator::PipelineStep& step) const {
  if (!torch_stage_) return at::empty(stage_->hidden_shape(), context_.options());
  const bool forward = step.kind == StepKind::kForward;
  return forward ? torch_stage_->input_buffer(step) : torch_stage_->gradient_buffer(step);
}

at::Tensor Trainer::receive(const estimator::PipelineStep& step) {
  const bool forward = step.kind == StepKind::kForward;
  std::deque<PendingMessage>& expected =
      expected_[forward ? Direction::kForward : Direction::kBackward];
  if (expected.empty()) expected.push_back(start_receiving(step));
  PendingMessage message = std::move(expected.front());
  expected.pop_front();
  message.call.wait();
  if (context_.chunks() == 1) finish_sending();
  return message.tensor;
}

void Trainer::expect(const estimator::PipelineStep& step) {
  const bool forward = step.kind == estimator::StepKind::kForward;
  if (forward ? context_.is_first_piece(step.chunk) : context_.is_last_piece(step.chunk)) return;
  const Direction direction = forward ? Direction::kForward : Direction::kBackward;
  const DirectionScope scope(context_.observer, direction, step.micro_batch, step.chunk);
  expected_[direction].push_back(start_receiving(step));
}

MessageRules Trainer::message_rules() const {
  const estimator::ParallelConfig& parallelism = context_.plan.parallelism;
  return {.stages = context_.stages(),
          .stage = context_.coordinate.pipeline,
          .overlaps = parallelism.overlap_p2p_communication,
          .overlaps_warm_up = parallelism.overlap_p2p_warmup_flush};
}

void Trainer::receive_ahead(const Steps& steps, std::size_t i) {
  if (!context_.framework().schedule_variables) return;
  if (context_.chunks() > 1) {
    for (const estimator::PipelineStep& step : received_after(steps, i, message_rules())) {
      expect(step);
    }
  } else if (is_paired(steps, i)) {
    expect(steps[i + 1]);
  }
  schedule_variables_.receives_started();
}

/// The stage has begun to receive what this step needs, except for the first forward, and for the
/// first backward where there are no pairs.
void Trainer::receive_before(const Steps& steps, std::size_t i) {
  const std::optional<estimator::PipelineStep> following =
      received_before(steps, i, message_rules());
  if (!following) return;
  const bool forward = steps[i].kind == StepKind::kForward;
  if (expected_[forward ? Direction::kForward : Direction::kBackward].empty()) expect(steps[i]);
  expect(*following);
}

/// In 1F1B the stage before sends its next output while this one sends a gradient: were both to
/// wait for their receiver, they would wait for ever. As in Megatron-LM's
/// send_backward_recv_forward, the gradient is held until the next message has come. Between chunks
/// the receiver may ask for any message only after what this stage computes next: each is held
/// until it is sent.
void Trainer::send(const at::Tensor& tensor, int64_t to_piece, Direction direction) {
  const ModuleScope module(context_.observer, "pipeline");
  const bool interleaved = context_.chunks() > 1;
  if (!interleaved) finish_sending();
  sending_.push_back(context_.groups.pipeline->start_send(
      tensor, to_piece % context_.stages(), static_cast<int>(direction)));
  if (interleaved) {
    drop_sent();
  } else if (direction == Direction::kForward) {
    finish_sending();
  }
}

void Trainer::drop_sent() {
  std::erase_if(sending_, [](const PendingCall& call) { return call.done(); });
}

void Trainer::finish_sending() {
  for (PendingCall& call : sending_) call.wait();
  sending_.clear();
}

MicroBatchData Trainer::micro_batch_data(int64_t iteration, const estimator::PipelineStep& step) {
  if (torch_stage_) return torch_stage_->data_of(step);
  const bool has_data = context_.is_first_piece(step.chunk) || context_.is_last_piece(step.chunk);
  return has_data ? mock_micro_batch(context_, iteration, step.micro_batch) : MicroBatchData{};
}

void Trainer::forward(int64_t iteration, const estimator::PipelineStep& step, bool pair_follows) {
  {
    const DirectionScope direction(
        context_.observer, Direction::kForward, step.micro_batch, step.chunk);
    const ForwardStart start = begin_forward(iteration, step, pair_follows);
    ChunkOutput result = stage_->forward(step.chunk, start.input, start.data);
    if (torch_stage_) torch_stage_->forward_ended(result);
    end_forward(step, start, std::move(result), pair_follows);
  }
  context_.observer.forward_finished(forward_number(step));
}

Trainer::ForwardStart Trainer::begin_forward(int64_t iteration,
                                             const estimator::PipelineStep& step,
                                             bool pair_follows) {
  const bool first = context_.is_first_piece(step.chunk);
  ForwardStart start{.data = micro_batch_data(iteration, step), .input = {}};
  start.input = first ? start.data.tokens : receive(step).requires_grad_(true);
  schedule_variables_.forward_started(step.chunk, first ? at::Tensor() : start.input, pair_follows);
  data_parallel_->start_forward();
  return start;
}

void Trainer::end_forward(const estimator::PipelineStep& step,
                          const ForwardStart& start,
                          ChunkOutput result,
                          bool pair_follows,
                          std::shared_ptr<ChunkPieces> pieces) {
  const bool first = context_.is_first_piece(step.chunk), last = context_.is_last_piece(step.chunk);
  at::Tensor output = std::move(result.output);
  if (last) {
    output = output.mean() / static_cast<double>(context_.plan.micro_batches());
    if (context_.plan.training.check_for_nan_in_loss_and_grad) {
      check_finite(output.detach(), "the loss");  // loss_func in pretrain_gpt.py
    }
    loss_sum_ = loss_sum_.defined() ? loss_sum_ + output.detach() : output.detach();
  } else {
    send(output.detach(), context_.piece(step.chunk) + 1, Direction::kForward);
  }
  const at::Tensor kept_output = last ? output : kept_part(output, context_);
  if (!kept_output.defined()) {  // who still holds it holds it for the next stage alone
    context_.observer.memory_lasts(output,
                                   {estimator::MemoryCategory::kCommunication, "pipeline", ""});
  }
  if (pieces) pieces->end_with(output);
  // Backward needs the graph, not the output: keeping the edge alone frees the output's memory,
  // as Megatron-LM's deallocate_pipeline_outputs does.
  in_flight_[forward_number(step)] = {.input = first ? at::Tensor() : start.input,
                                      .output = torch::autograd::impl::gradient_edge(output),
                                      .kept_output = kept_output,
                                      .logits = result.logits,
                                      .mask = kept_mask(start.data, context_),
                                      .pieces = std::move(pieces)};
  schedule_variables_.forward_ended(last ? at::Tensor() : output.detach(), pair_follows);
}

void Trainer::backward(const estimator::PipelineStep& step) {
  {
    const DirectionScope direction(
        context_.observer, Direction::kBackward, step.micro_batch, step.chunk);
    InFlight kept = take_in_flight(step);
    torch::autograd::variable_list gradients = {begin_backward(step)};
    torch::autograd::Engine::get_default_engine().execute({std::move(kept.output)},
                                                          gradients,
                                                          /*keep_graph=*/false,
                                                          /*create_graph=*/false,
                                                          /*accumulate_grad=*/true);
    end_backward(step, kept);
  }
  context_.observer.backward_finished(forward_number(step));
}

/// Returns the gradient of the chunk's output.
at::Tensor Trainer::begin_backward(const estimator::PipelineStep& step) {
  const bool last = context_.is_last_piece(step.chunk);
  schedule_variables_.backward_started();
  if (torch_stage_) {
    torch_stage_->backward_started();
    drop_sent();
  }
  at::Tensor gradient =
      last ? at::full({}, 1.0, context_.options().dtype(at::kFloat)) : receive(step);
  schedule_variables_.gradient_received(last ? at::Tensor() : gradient);
  data_parallel_->start_backward();
  return gradient;
}

void Trainer::end_backward(const estimator::PipelineStep& step, const InFlight& kept) {
  data_parallel_->finish_backward();
  if (context_.framework().reads_losses && context_.is_last_piece(step.chunk)) {
    check_finite(kept.kept_output.detach(), "the loss");
  }
  start_reducing_after(step);
  schedule_variables_.backward_ended(kept.input);
  const at::Tensor input_gradient = kept.input.defined() ? kept.input.grad() : at::Tensor();
  if (torch_stage_) {
    torch_stage_->backward_ended(input_gradient);
    if (kept.input.defined()) kept.input.mutable_grad() = at::Tensor();  // the buffer stays
  }
  if (!context_.is_first_piece(step.chunk)) {
    send(input_gradient, context_.piece(step.chunk) - 1, Direction::kBackward);
  }
}

/// train_step in megatron/training/training.py
void Trainer::optimizer_step() {
  const DirectionScope direction(context_.observer, Direction::kOptimizerStep);
  const ModuleScope module(context_.observer, "optimizer");
  const int64_t level = context_.plan.training.empty_unused_memory_level;
  if (level >= 1) give_back_free_memory(context_.device);
  optimizer_->step([this] { stage_->balance_experts(); });
  if (level >= 2) give_back_free_memory(context_.device);
}

double Trainer::loss() const { return loss_sum_.defined() ? loss_sum_.item().toDouble() : 0.0; }

int64_t Trainer::trained_elements() const {
  int64_t elements = 0;
  for (const Parameter* parameter : stage_->parameters().trained()) {
    const auto& quantized = parameter->quantized;
    elements +=
        parameter->lasting().numel() * (quantized ? quantized->products.elements_of_byte() : 1);
  }
  return elements;
}

estimator::ModelStateRecord Trainer::model_state() const {
  const estimator::ParametersRecord parameters = stage_->parameters().record();
  const auto gradient_bytes =
      static_cast<int64_t>(c10::elementSize(data_parallel_->gradient_type()));
  const int64_t parameter_bytes =
      parameters.count == 0 ? 0 : parameters.bytes / parameters.count;  // of one element
  const bool keeps_both = own_gradients(context_) == OwnGradients::kUntilNextBackward;
  const int64_t own_bytes = keeps_both ? parameters.bytes : 0;
  return {.parameter_bytes = parameters.bytes,
          .gradient_bytes =
              data_parallel_->gradient_elements().value_or(trained_elements()) * gradient_bytes +
              own_bytes,
          .master_weight_bytes = optimizer_->master_weight_bytes(),
          .optimizer_state_bytes = optimizer_->state_bytes(),
          .parameter_padding_bytes = data_parallel_->parameter_padding() * parameter_bytes,
          .gradient_padding_bytes = data_parallel_->gradient_padding() * gradient_bytes,
          .gradient_stand_in_bytes = stage_->parameters().gradient_stand_in_bytes(),
          .step_scalar_bytes = optimizer_->step_scalar_bytes()};
}

std::optional<estimator::HostMemoryRecord> Trainer::host_memory() const {
  return optimizer_->host_memory();
}

}  // namespace models
