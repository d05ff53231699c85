// Tensors that variables of Megatron-LM's pipeline schedules hold for longer than the backward
// needs them (megatron/core/pipeline_parallel/schedules.py). Other frameworks hold none.
//
// A chunk keeps its last input, and the gradient of this input, until it is given the next input,
// also between iterations (set_input_tensor of TransformerBlock). The schedules hold more tensors,
// at most until the iteration ends:
//   1F1B         the last output, until the gradient that is received as it is sent has its memory;
//                the last received gradient, until the next one has arrived; the gradient that the
//                last backward made for the stage before, until the next backward has ended; and
//                the graph of the last backward, which holds its input, until the next forward or
//                backward
//   interleaved  the gradient that the last backward made for the stage before, as above; the last
//                output, until the end of the backward that is paired with its forward, or in the
//                warm-up until what is received next has its memory; and, if
//                messages overlap with the steps, the last input that the warm-up received, with
//                its gradient, until the iteration ends; if they overlap in the warm-up, too, this
//                is the last input for which it waited (the handle of a message holds its tensor)
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace models {

class ScheduleVariables {
 public:
  struct Options {
    bool holds = false;
    bool interleaved = false;
    bool overlaps_messages = false;
    bool overlaps_warm_up = false;
    int64_t chunks = 1;
  };
  explicit ScheduleVariables(Options options);

  /// `input` is undefined on the first piece of the model. `pair_follows` says that the next step
  /// is the backward that is paired with this forward.
  void forward_started(int64_t chunk, const at::Tensor& input, bool pair_follows);
  /// `output` is undefined on the last piece.
  void forward_ended(const at::Tensor& output, bool pair_follows);
  /// What is received while the output is sent has its memory.
  void receives_started();
  void backward_started();
  void gradient_received(const at::Tensor& gradient);
  /// `input` is the input of its forward, which now has its gradient; undefined on the first piece.
  void backward_ended(const at::Tensor& input);
  void iteration_ended();

 private:
  Options options_;
  bool warmed_up_ = false;
  std::vector<at::Tensor> chunk_inputs_;
  at::Tensor warm_up_input_;
  at::Tensor last_output_;
  bool is_output_paired_ = false;   ///< the backward that is paired with its forward follows
  at::Tensor last_gradient_;        ///< last received gradient
  at::Tensor last_input_;           ///< input of the last backward's forward
  at::Tensor last_input_gradient_;  ///< gradient that the last backward made for it
};

}  // namespace models
