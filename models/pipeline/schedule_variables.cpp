#include "models/pipeline/schedule_variables.h"

namespace models {

ScheduleVariables::ScheduleVariables(Options options)
    : options_(options), chunk_inputs_(static_cast<std::size_t>(options.chunks)) {}

void ScheduleVariables::forward_started(int64_t chunk, const at::Tensor& input, bool pair_follows) {
  if (!options_.holds) return;
  const bool of_warm_up = options_.overlaps_warm_up ? !pair_follows : pair_follows && !warmed_up_;
  if (options_.overlaps_messages && of_warm_up && input.defined()) warm_up_input_ = input;
  warmed_up_ = warmed_up_ || pair_follows;
  last_output_ = at::Tensor();
  chunk_inputs_.at(static_cast<std::size_t>(chunk)) = input;
}

void ScheduleVariables::forward_ended(const at::Tensor& output, bool pair_follows) {
  if (!options_.holds) return;
  last_input_ = at::Tensor();
  last_output_ = output;
  is_output_paired_ = pair_follows;
}

void ScheduleVariables::receives_started() {
  if (!options_.interleaved || !is_output_paired_) last_output_ = at::Tensor();
}

void ScheduleVariables::backward_started() { last_input_ = at::Tensor(); }

void ScheduleVariables::gradient_received(const at::Tensor& gradient) {
  if (options_.holds && !options_.interleaved) last_gradient_ = gradient;
}

void ScheduleVariables::backward_ended(const at::Tensor& input) {
  if (!options_.holds) return;
  last_input_gradient_ = input.defined() ? input.grad() : at::Tensor();
  if (!options_.interleaved) last_input_ = input;
}

void ScheduleVariables::iteration_ended() {
  warmed_up_ = false;
  warm_up_input_ = last_output_ = last_gradient_ = last_input_ = last_input_gradient_ =
      at::Tensor();
}

}  // namespace models
