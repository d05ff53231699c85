#include "models/experts/token_dispatcher.h"

#include <stdexcept>

#include "models/experts/all_gather_dispatcher.h"
#include "models/experts/all_to_all_dispatcher.h"

namespace models {

std::shared_ptr<const TokenDispatcher> make_token_dispatcher(ShardContext& context) {
  switch (context.plan.training.moe_token_dispatcher_type) {
    case estimator::TokenDispatcher::kAllToAll:
      return std::make_shared<const AllToAllDispatcher>(context);
    case estimator::TokenDispatcher::kAllGather:
      return std::make_shared<const AllGatherDispatcher>(context);
    case estimator::TokenDispatcher::kFlex:
      break;
  }
  throw std::logic_error("a plan with this token dispatcher is refused");
}

}  // namespace models
