// Trains one rank's shard: builds it, runs the steps of its stage's schedule, reduces gradients and
// steps the optimizer. The phases of a profile are these methods.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "estimator/schedule/pipeline_schedule.h"
#include "models/data_parallel/data_parallel.h"
#include "models/optimizer/optimizer.h"
#include "models/pipeline/chunk_pieces.h"
#include "models/pipeline/message_order.h"
#include "models/pipeline/schedule_variables.h"
#include "models/pipeline/stage.h"
#include "models/pipeline/torch_stage.h"
#include "models/shard/shard_context.h"
#include "models/shard/side_stream.h"

namespace models {

class Trainer {
 public:
  /// Runs `micro_batches` of the plan's micro-batches (all, or as many as the peak needs).
  Trainer(ShardContext context, int64_t micro_batches, OptimizerSettings settings);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  void build_model();
  void build_optimizer();
  /// All forwards and backwards of one iteration, and the reduction of the gradients.
  void forward_backward(int64_t iteration);
  void optimizer_step();
  /// Gathers the updated parameters now that the plan gathers in the next forward.
  void finish_gathers() { data_parallel_->finish_gathers(); }

  /// Mean loss of the last iteration over its micro-batches; 0 on all stages but the last.
  double loss() const;
  const Stage& stage() const { return *stage_; }
  const DataParallel& data_parallel() const { return *data_parallel_; }
  estimator::ModelStateRecord model_state() const;
  /// The memory that the optimizer keeps on the host, if it keeps any there.
  std::optional<estimator::HostMemoryRecord> host_memory() const;

 private:
  /// What a micro-batch keeps of a chunk between its forward and its backward.
  struct InFlight;
  struct PendingMessage {
    at::Tensor tensor;
    PendingCall call;
  };

  void build_shard();
  void build_fully_sharded();
  FullyShardedOptions fully_sharded_options(int64_t chunk);
  void build_zero_shards();
  /// Begins the gathers of updated parameters that are to begin before the forward steps[i].
  void run_schedule(int64_t iteration);
  void start_gathers_before(const Steps& steps, std::size_t i);
  MessageRules message_rules() const;
  /// Starts to receive what steps after steps[i] need before this step begins, or when it has
  /// ended, if the framework starts this so early.
  void receive_before(const Steps& steps, std::size_t i);
  void receive_ahead(const Steps& steps, std::size_t i);
  void expect(const estimator::PipelineStep& step);
  /// `pair_follows`: whether the stage's next step is the backward that an interleaved schedule
  /// pairs this forward with.
  void forward(int64_t iteration, const estimator::PipelineStep& step, bool pair_follows);
  void backward(const estimator::PipelineStep& step);
  /// What comes before and after the chunk's own work in a forward, and in a backward.
  struct ForwardStart {
    MicroBatchData data;
    at::Tensor input;  ///< tokens, or the received hidden states
  };
  ForwardStart begin_forward(int64_t iteration,
                             const estimator::PipelineStep& step,
                             bool pair_follows);
  void end_forward(const estimator::PipelineStep& step,
                   const ForwardStart& start,
                   ChunkOutput result,
                   bool pair_follows,
                   std::shared_ptr<ChunkPieces> pieces = nullptr);
  at::Tensor begin_backward(const estimator::PipelineStep& step);
  void end_backward(const estimator::PipelineStep& step, const InFlight& kept);
  InFlight take_in_flight(const estimator::PipelineStep& step);
  /// A forward and a backward that run together, of which one may be empty.
  struct CombinedSteps {
    const estimator::PipelineStep* forward = nullptr;
    const estimator::PipelineStep* backward = nullptr;
  };
  CombinedSteps combined_steps(const Steps& steps, std::size_t i) const;
  /// Runs steps[i], and the one after it if they are a pair; returns how many it has run.
  std::size_t run_combined(int64_t iteration, const Steps& steps, std::size_t i);
  void run_pieces(const CombinedSteps& combined, ChunkPieces* forward, ChunkPieces* backward);
  void start_reducing_in(const estimator::PipelineStep& backward);
  /// Where chunks alternate, the stages begin the reduction of one together: each when as many
  /// more backwards have ended as there are stages before it.
  void start_reducing_after(const estimator::PipelineStep& backward);
  MicroBatchData micro_batch_data(int64_t iteration, const estimator::PipelineStep& step);
  PendingMessage start_receiving(const estimator::PipelineStep& step);
  at::Tensor receive_buffer(const estimator::PipelineStep& step) const;
  at::Tensor receive(const estimator::PipelineStep& step);
  void change_active_chunks(const Steps& steps, std::size_t i);
  void finish_chunk_after(const estimator::PipelineStep& step);
  void send(const at::Tensor& tensor, int64_t to_piece, estimator::Direction direction);
  void drop_sent();
  void finish_sending();
  /// A number that identifies a forward within an iteration.
  int64_t forward_number(const estimator::PipelineStep& step) const;
  void finish_deferred_gradients();
  void reduce_gradients();
  void reduce_sequence_partial_gradients();
  int64_t trained_elements() const;

  ShardContext context_;
  int64_t micro_batches_;
  OptimizerSettings settings_;
  std::unique_ptr<Stage> stage_;
  std::shared_ptr<DataParallel> data_parallel_;
  std::unique_ptr<DistributedOptimizer> optimizer_;
  std::map<int64_t, InFlight> in_flight_;  ///< by forward_number()
  ScheduleVariables schedule_variables_;
  std::unique_ptr<TorchStage> torch_stage_;  ///< null in other frameworks
  std::vector<int64_t> active_chunks_;       ///< of it: those that are gathered
  std::vector<PendingCall> sending_;
  std::deque<estimator::PipelineStep> not_reduced_;  ///< backwards that have ended
  std::map<estimator::Direction, std::deque<PendingMessage>> expected_;  ///< in order of arrival
  at::Tensor loss_sum_;
  std::optional<SideStream> sending_tokens_;  ///< of plans that combine forwards and backwards
  std::optional<SideStream> graph_pool_;      ///< of a CUDA graph of all forwards and backwards
};

/// The optimizer settings with which Onerank trains; epsilon is Adam's usual 1e-8.
OptimizerSettings default_optimizer(const estimator::Plan& plan);

}  // namespace models
