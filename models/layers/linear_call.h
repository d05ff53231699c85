// What the autograd functions of a linear layer share: parallel_linear.cpp, quantized_linear.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/layers/parallel_linear.h"
#include "models/shard/products.h"

namespace models {

/// Products for the weight's gradient that wait for the pipeline's flush.
class DeferredProducts {
 public:
  struct Operands {
    at::Tensor input, output_gradient;
  };

  /// `limit` of an iteration, the first ones; 0 for all.
  explicit DeferredProducts(int64_t limit) : limit_(static_cast<std::size_t>(limit)) {}

  bool take_more() const { return limit_ == 0 || waiting_.size() < limit_; }
  void take(Operands operands) { waiting_.push_back(std::move(operands)); }
  std::deque<Operands> take_all_out() { return std::exchange(waiting_, {}); }

 private:
  std::size_t limit_;
  std::deque<Operands> waiting_;
};

class QuantizedLayer;

/// What the autograd functions need to know of a layer, kept by its graph nodes.
struct LinearCall {
  LinearCall(const ShardContext& context,
             ParameterStore& parameters,
             const LinearSpec& spec,
             Parameter& matrix,
             bool row_parallel);

  ParameterStore* store;
  Parameter* weight;
  bool trains_weight;       ///< else it has no gradient, and its product needs no input
  bool has_bias;            ///< of a column parallel layer: added inside the function
  bool autograds_own;       ///< PyTorch's linear(), under its own autograd
  bool transformer_engine;  ///< TransformerEngine's layer, with its workspace
  Products products;
  bool lasting_stand_ins;  ///< autograd gets TransformerEngine's stand-ins for gradients
  bool global_memory;      ///< gathers the sequence into a buffer that all layers share
  bool keeps_gathered;     ///< the gathered sequence is kept, not this rank's part of it
  bool asynchronous;       ///< multiplies its own part of a sequence while the rest is gathered
  bool overlaps_backward;  ///< its collectives run beside its products
  bool fused_gradient;
  bool of_dtensors;  ///< Python calls each operator again for this rank's part
  std::shared_ptr<Communicator> tensor_group;
  bool sequence_parallel;
  std::shared_ptr<FrameworkBuffers> buffers;
  std::shared_ptr<OutputKeeper> keeper;
  std::shared_ptr<DeferredProducts> deferred;  ///< null if no products are deferred
  std::shared_ptr<DelayedGradients> delayed;   ///< null if they are not put off to another piece
  std::shared_ptr<QuantizedLayer> quantized;   ///< null if products are in 16 bits
  const estimator::Plan* plan;
  ModuleRunner* modules;
  const char* python;  ///< for host_work.h
  std::string name;    ///< its path
};

using CallPointer = std::shared_ptr<const LinearCall>;

/// As an argument of an autograd function, which takes no undefined tensor.
inline std::optional<at::Tensor> if_defined(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
}

/// What autograd gets where the product has added the gradient. Megatron-LM's own layer gives it a
/// tensor of the weight's shape and type, zeros for a weight that has another gradient to be added
/// (LinearWithGradAccumulationAndAsyncCommunication in megatron/core/tensor_parallel/layers.py).
/// With TransformerEngine at hand it takes it from there, as the other layers do, and it lasts;
/// else it is dropped at once. Of several products with one weight, autograd adds the stand-ins up.
at::Tensor gradient_stand_in(const LinearCall& call);

/// Runs what adds to the weight's gradient, or puts it off where the plan delays such products.
void now_or_delayed(const LinearCall& call, std::function<void()> add);

/// The shape of the whole sequence, of which `part` is this rank's.
std::vector<int64_t> whole_shape(const LinearCall& call, const at::Tensor& part);
/// Where Megatron-LM or TransformerEngine puts it.
at::Tensor sequence_buffer(const LinearCall& call, const at::Tensor& part);
at::Tensor gather(const LinearCall& call, const at::Tensor& part);
/// Of backward: gathers the input's sequence again.
PendingCall start_gather(const LinearCall& call, const at::Tensor& whole, const at::Tensor& part);
/// Of backward: the sum of the ranks' gradients, or under sequence parallelism this rank's part of
/// it, takes the place of `gradient`.
PendingCall start_sum(const LinearCall& call, at::Tensor& gradient);
/// Of a row parallel layer's forward: the sum of the ranks' products, or under sequence parallelism
/// this rank's part of it.
at::Tensor summed(const LinearCall& call, const at::Tensor& partial);
/// Before a layer's forward product: the workspace of TransformerEngine's products.
void start_product(const LinearCall& call, const at::Tensor& input);

}  // namespace models
