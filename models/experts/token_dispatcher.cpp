#include "models/experts/token_dispatcher.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include "models/experts/all_gather_dispatcher.h"
#include "models/experts/all_to_all_dispatcher.h"
#include "models/experts/flex_dispatcher.h"
#include "models/shard/kernel_scope.h"

namespace models {

void TokenDispatcher::make_tables(const std::vector<int64_t>& chosen,
                                  const std::vector<int64_t>& permuted,
                                  const std::vector<int64_t>& weight_places) {
  const auto on_device = [this](const std::vector<int64_t>& numbers) {
    return at::tensor(numbers, at::kLong).to(context_.device);
  };
  chosen_ = on_device(chosen).view({-1, context_.plan.model.moe_router_topk});
  permuted_ = on_device(permuted);
  weight_places_ = on_device(weight_places);
  for (const at::Tensor& table : {chosen_, permuted_, weight_places_}) {
    context_.observer.memory_lasts(table,
                                   {estimator::MemoryCategory::kWorkspace, "expert_routing", ""});
  }
}

/// make_row_id_map in transformer_engine/pytorch/triton/permutation.py: the number of each token
/// among its expert's, that of all before it, and what a token has at the front.
at::Tensor TokenDispatcher::make_row_map(const at::Tensor& tokens, int64_t count, int64_t experts) {
  const auto options = tokens.options().dtype(at::kInt).requires_grad(false);
  at::Tensor row_map = at::empty({count, 2 * experts + 1}, options);
  for (const int64_t columns : {experts, experts, 2 * experts + 1}) {
    KernelScope kernel("te::moe_row_map");
    const at::Tensor part = row_map.narrow(1, 0, columns);
    kernel.moves(part, part);
  }
  return row_map;
}

std::shared_ptr<const TokenDispatcher> make_token_dispatcher(ShardContext& context) {
  switch (context.plan.training.moe_token_dispatcher_type) {
    case estimator::TokenDispatcher::kAllToAll:
      return std::make_shared<const AllToAllDispatcher>(context);
    case estimator::TokenDispatcher::kAllGather:
      return std::make_shared<const AllGatherDispatcher>(context);
    case estimator::TokenDispatcher::kFlex:
      break;
  }
  if (context.device_computes) return std::make_shared<const AllToAllDispatcher>(context);
  return std::make_shared<const FlexDispatcher>(context);
}

}  // namespace models
