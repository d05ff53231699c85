// When a stage of an interleaved pipeline starts to receive what its steps need, as
// forward_backward_pipelining_with_interleaving in Megatron-LM's
// megatron/core/pipeline_parallel/schedules.py does. Pure arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "estimator/schedule/pipeline_schedule.h"

namespace models {

/// The steps of one stage, in order.
using Steps = std::vector<estimator::PipelineStep>;

struct MessageRules {
  int64_t stages = 1;
  int64_t stage = 0;
  bool overlaps = true;           ///< messages overlap with the steps between warm-up and flush
  bool overlaps_warm_up = false;  ///< and with those of warm-up and flush
};

/// The first `most` chunks of the steps from steps[i] on, each once.
std::vector<int64_t> next_chunks(const Steps& steps, std::size_t i, std::size_t most);

/// Whether steps[i] is a forward that is paired with the backward after it: the stage's warm-up has
/// ended.
bool is_paired(const Steps& steps, std::size_t i);

/// The steps whose messages the stage starts to receive when steps[i] has ended: the next input
/// after each forward, or, where stages wait for what they send, after the backward that is paired
/// with it; the next gradient after each backward, and the first one after the warm-up, if there
/// are pairs after it. The first stage gets inputs from the last one, which is as many steps behind
/// as there are stages before it, and may receive them several steps before their turn; and so does
/// the last stage with gradients (recv_tensor_from_previous_stage).
Steps received_after(const Steps& steps, std::size_t i, const MessageRules& rules);

/// The step whose message the stage starts to receive before steps[i], and not after it, if
/// messages overlap with warm-up and flush: the next one in the warm-up of a stage that is not the
/// first, and in the flush of one that is not the last.
std::optional<estimator::PipelineStep> received_before(const Steps& steps,
                                                       std::size_t i,
                                                       const MessageRules& rules);

}  // namespace models
