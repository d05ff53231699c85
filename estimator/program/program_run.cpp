#include "estimator/program/program_run.h"

#include <fmt/format.h>

#include "estimator/base/errors.h"

namespace estimator {

std::optional<int64_t> ProgramRun::said_tokens() const {
  if (sequence_length && !global_batch_size) {
    throw UserError({.what = "the tokens of a sample say nothing without the samples of a step",
                     .where = fmt::format("--seq-length = {}", *sequence_length),
                     .help = "give --global-batch-size too, or --tokens-per-step"});
  }
  if (!sequence_length) return tokens_per_step;
  const int64_t product = *global_batch_size * *sequence_length;
  if (tokens_per_step && *tokens_per_step != product) {
    throw UserError(
        {.what = "the tokens of a step are said twice, and differ",
         .where = fmt::format(
             "--tokens-per-step = {}, --global-batch-size x --seq-length = {} x {} = {}",
             *tokens_per_step,
             *global_batch_size,
             *sequence_length,
             product),
         .help = "leave out --tokens-per-step"});
  }
  return product;
}

}  // namespace estimator
