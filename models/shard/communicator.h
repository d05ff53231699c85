// One group of ranks as the shard sees it. Wraps a c10d::Backend; only communicator.cpp knows its
// header. The shard never learns whether the other ranks exist.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "estimator/plan/parallel_layout.h"

namespace c10d {
class Backend;
class Work;
}  // namespace c10d

namespace models {

/// A collective that was started; wait() once before its tensors are read or reused.
class PendingCall {
 public:
  PendingCall();  ///< of a collective that is over
  explicit PendingCall(c10::intrusive_ptr<c10d::Work> work);
  ~PendingCall();
  PendingCall(PendingCall&&) noexcept;
  PendingCall& operator=(PendingCall&&) noexcept;
  void wait();
  /// Whether wait() would return without waiting.
  bool done() const;

 private:
  c10::intrusive_ptr<c10d::Work> work_;
};

/// Whose collectives they are: torch.distributed's, which run on the caller's stream unless they
/// are only started, or those of DTensors (torch/distributed/_functional_collectives.py), which run
/// on NCCL's own and are waited for at once.
enum class Collectives { kDistributed, kFunctional };

/// All tensors must be contiguous. Reductions are sums unless the name says otherwise. Methods
/// without `start_` have finished when they return (on a GPU: in stream order).
class Communicator {
 public:
  explicit Communicator(c10::intrusive_ptr<c10d::Backend> backend,
                        Collectives collectives = Collectives::kDistributed);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int64_t size() const;
  /// This rank's place in the group.
  int64_t index() const;
  bool is_functional() const { return is_functional_; }

  void all_reduce(at::Tensor tensor);
  void all_reduce_max(at::Tensor tensor);
  /// Several in one call.
  void all_reduce_max(std::vector<at::Tensor> tensors);
  /// `output` holds the inputs of all members, one after the other.
  void all_gather(at::Tensor output, at::Tensor input);
  /// `output` is this rank's part of the sum of all inputs.
  void reduce_scatter(at::Tensor output, at::Tensor input);
  /// As start_all_to_all() with numbers of rows.
  void all_to_all(at::Tensor output,
                  at::Tensor input,
                  std::vector<int64_t> received,
                  std::vector<int64_t> sent);
  /// Messages between two ranks with the same tag arrive in the order in which they were sent.
  void send(at::Tensor tensor, int64_t to_index, int tag = 0);
  void recv(at::Tensor tensor, int64_t from_index, int tag = 0);

  PendingCall start_all_reduce(at::Tensor tensor);
  PendingCall start_all_gather(at::Tensor output, at::Tensor input);
  /// Several gathers in one call.
  PendingCall start_all_gather(std::vector<at::Tensor> outputs, std::vector<at::Tensor> inputs);
  PendingCall start_reduce_scatter(at::Tensor output, at::Tensor input);
  PendingCall start_broadcast(at::Tensor tensor, int64_t from_index);
  /// Sends the i-th of size() equal parts of `input` to member i, and receives the part from member
  /// i in the i-th place of `output`.
  PendingCall start_all_to_all(at::Tensor output, at::Tensor input);
  /// The same, with the given number of rows (dim 0) from and to each member.
  PendingCall start_all_to_all(at::Tensor output,
                               at::Tensor input,
                               std::vector<int64_t> received,
                               std::vector<int64_t> sent);
  PendingCall start_send(at::Tensor tensor, int64_t to_index, int tag = 0);
  PendingCall start_recv(at::Tensor tensor, int64_t from_index, int tag = 0);

 private:
  bool runs_beside() const;

  c10::intrusive_ptr<c10d::Backend> backend_;
  bool is_functional_;
};

/// The groups of one rank. Null stands for a group of one rank, which needs no communication.
struct ProcessGroups {
  std::shared_ptr<Communicator> tensor;
  std::shared_ptr<Communicator> context;  ///< the ranks that split a sequence
  /// Data x context ranks: gradients and optimizer shards; those of one instance of the optimizer.
  std::shared_ptr<Communicator> data;
  std::shared_ptr<Communicator> pipeline;
  std::shared_ptr<Communicator> tensor_context;  ///< ranks that share the same sequences
  std::shared_ptr<Communicator> embedding;       ///< first and last stage; null on the others
  std::shared_ptr<Communicator> expert;          ///< ranks among which the experts are divided
  std::shared_ptr<Communicator> expert_tensor;   ///< ranks that split the same experts
  std::shared_ptr<Communicator> expert_model;    ///< expert x expert_tensor: one set of all experts
  std::shared_ptr<Communicator> expert_data;     ///< gradients and optimizer shards of experts
  std::shared_ptr<Communicator> instances;       ///< the same shard in each instance
  std::shared_ptr<Communicator> stage;           ///< all ranks of the pipeline stage
};

/// Each of them, and the group of a layout that it is.
struct GroupOfKind {
  estimator::GroupKind kind;
  std::shared_ptr<Communicator> ProcessGroups::*group;
};
inline constexpr std::array<GroupOfKind, 12> kGroupsOfKinds = {
    {{estimator::GroupKind::kTensor, &ProcessGroups::tensor},
     {estimator::GroupKind::kContext, &ProcessGroups::context},
     {estimator::GroupKind::kDataContext, &ProcessGroups::data},
     {estimator::GroupKind::kPipeline, &ProcessGroups::pipeline},
     {estimator::GroupKind::kEmbedding, &ProcessGroups::embedding},
     {estimator::GroupKind::kTensorContext, &ProcessGroups::tensor_context},
     {estimator::GroupKind::kExpert, &ProcessGroups::expert},
     {estimator::GroupKind::kExpertTensor, &ProcessGroups::expert_tensor},
     {estimator::GroupKind::kExpertModel, &ProcessGroups::expert_model},
     {estimator::GroupKind::kExpertData, &ProcessGroups::expert_data},
     {estimator::GroupKind::kInstances, &ProcessGroups::instances},
     {estimator::GroupKind::kStage, &ProcessGroups::stage}}};

inline int64_t group_size(const std::shared_ptr<Communicator>& group) {
  return group ? group->size() : 1;
}

}  // namespace models
