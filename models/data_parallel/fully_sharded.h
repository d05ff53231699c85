// FSDP2 (torch.distributed.fsdp.fully_shard): each data rank keeps a part of every parameter in
// fp32, with the gradient and optimizer state of this part. The model is cut into units: embedding,
// each layer and head, as TorchTitan wraps it, or each layer and the rest, as accelerate does.
// Before its forward and before its backward, a unit's parameters are gathered in the type of the
// computation; after each they are freed. Gradients are reduce-scattered in fp32 when the unit's
// backward is over. With replicas (HSDP) the ranks of one replica divide the parameters, and the
// reduced parts are all-reduced between the replicas.
//
// The buffers, their order and their streams are those of torch 2.11: FSDPParamGroup in
// torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, foreach_all_gather and foreach_reduce
// in _fsdp_collectives.py.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "models/data_parallel/data_parallel.h"
#include "models/shard/communicator.h"
#include "models/shard/side_stream.h"

namespace models {

struct FullyShardedOptions {
  at::Device device;
  std::shared_ptr<Communicator> data_group;  ///< null if there is one data rank
  /// The same of units of experts: the ranks that have the same ones.
  std::shared_ptr<Communicator> expert_data_group;
  std::shared_ptr<Communicator> replica_group;  ///< has the same part in each replica; may be null
  /// The experts of a layer are a unit inside of the layer's, whose number is one more. Then units
  /// are gathered ahead as TorchTitan asks for it (apply_fsdp in
  /// torchtitan/models/llama4/infra/parallelize.py, v0.2.2), because the host waits for the number
  /// of tokens that arrive.
  bool experts_are_units = false;
  std::shared_ptr<Communicator> tensor_group;  ///< sums gradients of sequence-partial parameters
  /// fully_shard's reshard_after_forward. If false, parameters stay gathered from forward to
  /// backward (ZeRO-2).
  bool reshard_after_forward = true;
  /// The last unit is asked for that like the others. Else it stays gathered, because its backward
  /// follows at once.
  bool reshards_last = false;
  c10::ScalarType part_type = c10::ScalarType::Float;
  /// MixedPrecisionPolicy's reduce_dtype.
  c10::ScalarType reduce_type = c10::ScalarType::Float;
  /// Gradients stay whole, and are summed, until the last micro-batch
  /// (set_requires_gradient_sync).
  bool accumulates_whole_gradients = false;
  /// The units are those of a stage of torch.distributed.pipelining: after their backward they stay
  /// gathered, and their gradients whole, in reduce_type; when all backwards of the chunk are over,
  /// unit after unit is freed and reduced, in the order of the modules
  /// (backward_maybe_with_nosync() and perform_reduce_grad() in stage.py).
  bool in_pipeline = false;
  int64_t chunk = 0;  ///< model chunk that the units belong to
  /// Each unit is gathered once in a step, before its first forward.
  bool gathers_once = false;
  Observer& observer;
};

/// The units of a chunk, which are numbered over all chunks of a stage.
struct ChunkUnits {
  int64_t first = 0;
  int64_t last = 0;  ///< with which the forward ends
  /// The first unit is also the last one (its parameters are used at both ends).
  bool is_loop = false;
};

class FullySharded final : public DataParallel {
 public:
  using Body = std::function<at::Tensor(const at::Tensor&)>;

  explicit FullySharded(FullyShardedOptions options);
  ~FullySharded() override;
  FullySharded(const FullySharded&) = delete;
  FullySharded& operator=(const FullySharded&) = delete;

  /// Sets the units of a built model's chunk.
  void set_parameters(ParameterStore& store, const ChunkUnits& units);

  /// Runs body(input) while the parameters of unit `number` are gathered; the backward gathers them
  /// again. The input of the first unit needs no gradient. The first unit may also be the last one
  /// (tied embeddings). A unit may run again inside of a backward, where a checkpoint around it, or
  /// around the layer that has its experts, is recomputed: then it stays gathered for its backward.
  at::Tensor run(int64_t number, const at::Tensor& input, const Body& body);

  void begin_iteration() override;
  void start_last_micro_batch(int64_t) override { reduces_ = !options_.in_pipeline; }
  void start_backward() override {}
  /// Ends the backward of units whose input needs no gradient, and frees what the last units still
  /// hold.
  void finish_backward() override;
  void finish_chunk(int64_t chunk) override;
  void start_gathering_chunk(int64_t chunk) override;
  void free_chunk(int64_t chunk) override;
  void finish_reduction() override {}
  void gather_parameters() override {}

  std::vector<OwnedPiece> owned_pieces() const override;
  bool has_flat_gradients() const override { return false; }
  c10::ScalarType gradient_type() const override { return options_.part_type; }
  int64_t parameter_padding() const override;
  int64_t gradient_padding() const override { return parameter_padding(); }
  Observer& observer() const override { return options_.observer; }

 private:
  friend struct UnitBackwardFunction;

  static constexpr const char* kModule = "fsdp";  ///< what the observer calls its memory and work

  /// The result of an all-gather: the parts of a unit from all ranks, one rank after the other.
  struct Gathered {
    at::Tensor whole;
    StreamPoint arrived;
    StreamPoint copied_out;
  };
  struct Unit {
    std::vector<Parameter*> parameters;
    std::vector<Parameter*> trained;      ///< those that have gradients
    std::shared_ptr<Communicator> group;  ///< has the other parts; null if there are none
    bool is_inside = false;               ///< of the unit before it
    /// Those whose gathering starts as soon as this one is gathered.
    std::vector<std::size_t> ahead_in_forward, ahead_in_backward;
    bool stays_gathered = false;
    bool is_whole = false;
    bool in_backward = false;
    std::optional<Gathered> gathering;   ///< an all-gather that was started but not copied out yet
    std::vector<at::Tensor> sums;        ///< of whole gradients, of each parameter
    std::vector<std::size_t> positions;  ///< in forward_order_: forwards whose backward is to come
    at::Tensor summing;                  ///< over the replicas, until the end of the backward
  };

  void plan_gathering_ahead();
  void add_to_unit(Parameter& parameter);
  std::vector<std::size_t> with_inside(std::size_t number) const;
  std::unique_ptr<DirectionScope> once_in_step() const;
  void start_gathering(Unit& unit);
  /// The parts are copied on the current stream, for which the all-gather waits.
  void start_gathering_from_current(Unit& unit);
  struct GatherBuffers;
  static GatherBuffers gather_buffers(const Unit& unit);
  at::Tensor place_of(const Parameter& parameter, int64_t ranks) const;
  void finish_gathering(Unit& unit, bool in_forward);
  void finish_gathering_chunk();
  void free_parameters(Unit& unit);
  void before_backward(std::size_t number);
  void after_backward(std::size_t number);
  void keep_whole_gradients(Unit& unit);
  void sum_whole_gradients(Unit& unit);
  std::vector<at::Tensor> take_gradients(Unit& unit);
  void finish_reductions();
  void reduce(Unit& unit, std::vector<at::Tensor> gradients);
  void add_gradients(const Unit& unit, const at::Tensor& reduced);
  void release(const Gathered& gathered);
  void release_last_gathered();

  FullyShardedOptions options_;
  SideStream copy_in_stream_, gather_stream_, reduce_stream_;
  std::optional<SideStream> replica_stream_;  ///< sums over the replicas
  std::vector<Unit> units_;
  /// Reduced, flattened and padded as the parts: views of what the units' reductions gave.
  std::map<const Parameter*, at::Tensor> gradients_;
  int64_t first_unit_ = 0;
  std::size_t last_unit_ = 0;       ///< counted from the first one
  bool is_loop_ = false;            ///< see ChunkUnits
  bool is_gathered_ahead_ = false;  ///< start_gathering_chunk() was called, and no forward since
  int running_ = 0;                 ///< units whose body runs now, one inside of the other
  bool reduces_ = true;             ///< in this micro-batch
  std::vector<std::size_t> forward_order_;
  std::optional<Gathered> last_gathered_;  ///< of the last forward; freed at the next one
  at::Tensor reducing_;                    ///< input of the last reduce-scatter
  StreamPoint scattered_;                  ///< its end
};

}  // namespace models
