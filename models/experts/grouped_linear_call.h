// What the autograd functions of a grouped linear layer need to know of it, kept by their graph
// nodes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/experts/grouped_linear.h"
#include "models/shard/delayed_gradients.h"
#include "models/shard/framework_buffers.h"
#include "models/shard/products.h"

namespace models {

struct QuantizedExperts;

struct GroupedLinearCall {
  ParameterStore* store;
  std::vector<Parameter*> weights;
  std::vector<Parameter*> biases;  ///< that the products add; empty: none
  bool fused_gradient;
  bool transformer_engine;
  bool issued_together;  ///< the products of all experts, by TransformerEngine
  Products products;
  std::shared_ptr<FrameworkBuffers> buffers;
  const estimator::Plan* plan;
  std::shared_ptr<QuantizedExperts> quantized;  ///< null if products are in 16 bits
  const char* python;                           ///< for host_work.h
  std::shared_ptr<DelayedGradients> delayed;    ///< null if the plan delays no products
  std::string name;                             ///< its path
};

struct KeptGroupedCall {
  std::shared_ptr<const GroupedLinearCall> call;
  std::vector<int64_t> rows_of;
  bool agrees = false;  ///< on delayed scales of gradients after its backward
};

/// For each expert, its rows of both; begins at row 0.
template <class Visit>
void for_each_expert(const std::vector<int64_t>& rows_of, const Visit& visit) {
  int64_t begin = 0;
  for (std::size_t expert = 0; expert < rows_of.size(); ++expert) {
    visit(expert, [&, rows = rows_of[expert]](const at::Tensor& all) {
      return all.narrow(0, begin, rows);
    });
    begin += rows_of[expert];
  }
}

/// The gradient of each expert's bias, which the products of the weight's gradient make, too.
std::vector<at::Tensor> bias_gradients(const KeptGroupedCall& kept_call,
                                       const at::Tensor& gradient);

/// Runs what adds to the gradients of all weights, or puts it off where the plan delays it.
void now_or_delayed(const GroupedLinearCall& call, std::function<void()> add);

/// Those of TransformerEngine's products.
void use_workspaces(const GroupedLinearCall& call, const at::Device& device);

/// Null if the plan's products are in 16 bits.
std::shared_ptr<QuantizedExperts> make_quantized_experts(const ShardContext& context,
                                                         const GroupedLinearSpec& spec);

/// The layer in 8 or 4 bits, as TransformerEngine's GroupedLinear runs it, or its Linear for one
/// expert: each expert's rows, weight and output gradients are quantized by themselves. `input`
/// [rows, inputs], `parameters` are weights and biases as autograd sees them; returns [rows,
/// outputs].
at::Tensor quantized_grouped_linear(const at::Tensor& input,
                                    const std::vector<at::Tensor>& parameters,
                                    const KeptGroupedCall& kept_call);

}  // namespace models
