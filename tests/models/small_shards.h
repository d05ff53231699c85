// Shards small enough to run on the CPU in milliseconds.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "estimator/base/fields.h"
#include "estimator/plan/plan.h"
#include "models/pipeline/trainer.h"

namespace models {

class SilentObserver final : public Observer {
 public:
  void enter_module(const std::string&) override {}
  void leave_module() override {}
  void enter_direction(estimator::Direction, int64_t, int64_t) override {}
  void leave_direction() override {}
  void enter_piece(estimator::Direction, int64_t, int64_t, int64_t) override {}
  void leave_piece() override {}
  int64_t new_stream() override { return 0; }
  void enter_stream(int64_t) override {}
  void leave_stream() override {}
  int64_t record_point() override { return -1; }
  void wait_for_point(int64_t) override {}
  void forward_finished(int64_t) override {}
  void backward_finished(int64_t) override {}
  void memory_lasts(const at::Tensor&, const LastingMemory&) override {}
};

/// Two layers, hidden 32, 4 heads, vocabulary 64, sequence 16, fp32, one rank; `changes` is merged
/// in.
estimator::Plan small_plan(const estimator::Json& changes = estimator::Json::object());

/// The same as a Llama: RMSNorm, SwiGLU, rotary, 2 key/value heads, no biases, untied.
estimator::Json llama_changes();

/// The same with multi-latent attention: heads of 8 and 4 more with positions, values of 6, norms
/// of both latents.
estimator::Json latent_changes();

/// The same with what gpt-oss has: sinks, every second layer in a window of four tokens, biases,
/// and four experts in each layer. Attention is that of cuDNN.
estimator::Json gpt_oss_changes();

/// The plan in fp32, which a GPU's kernel would refuse, for the sake of exact numbers.
estimator::Plan exact_plan(estimator::Json changes);

/// What a single rank computes in one iteration of `plan`.
struct Iteration {
  double loss = 0;
  std::map<std::string, at::Tensor> gradients;  ///< by parameter name, fp32
};
Iteration run_iteration(const estimator::Plan& plan);

/// A rank on the CPU with its model built; `plan` and `observer` must outlive it.
std::unique_ptr<Trainer> built_trainer(const estimator::Plan& plan,
                                       const estimator::RankCoordinate& coordinate,
                                       ProcessGroups groups,
                                       Observer& observer);

/// One iteration of all ranks at once, each in a thread.
void run_side_by_side(const std::vector<std::unique_ptr<Trainer>>& ranks);

/// By parameter name; of whole gradients.
std::map<std::string, at::Tensor> gradients_of(const Trainer& trainer);

/// Norm of the difference over the norm of `expected`.
double relative_difference(const at::Tensor& actual, const at::Tensor& expected);

/// For the shard of one rank on the meta device: shapes without memory, for models of any size.
ShardContext meta_context(const estimator::Plan& plan, int64_t rank, Observer& observer);

}  // namespace models
