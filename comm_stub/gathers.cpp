#include "comm_stub/stub_backend_impl.h"
#include "comm_stub/values.h"

namespace comm_stub {

using c10d::OpType;
using estimator::CollectiveKind;

WorkPtr StubBackend::allgather(std::vector<Tensors>& output_lists,
                               Tensors& inputs,
                               const c10d::AllgatherOptions& options) {
  const Checks check = checks("allgather");
  const Tensors& outputs = check.only(output_lists);
  const at::Tensor& input = check.only(inputs);
  check.contiguous(input);
  check.entries(outputs, input, getRank());

  record({.kind = CollectiveKind::kAllGather,
          .dtype = dtype_of(input),
          .bytes = bytes_of(outputs),
          .asynchronous = is_asynchronous(options)});
  Tensors buffer = flat_buffer(outputs);
  write([&] {
    for (const at::Tensor& output : outputs) write_entry(output, input);
  });
  return complete({.op = OpType::ALLGATHER,
                   .outputs = outputs,
                   .inputs = inputs,
                   .kept = std::move(buffer),
                   .asynchronous = is_asynchronous(options)});
}

void StubBackend::all_gather_one(const at::Tensor& output,
                                 const at::Tensor& input,
                                 const c10d::AllgatherOptions& options) {
  record({.kind = CollectiveKind::kAllGather,
          .dtype = dtype_of(output),
          .bytes = bytes_of(output),
          .asynchronous = is_asynchronous(options)});
  write([&] { write_in_slots(output, input, getSize()); });
}

WorkPtr StubBackend::_allgather_base(at::Tensor& output,
                                     at::Tensor& input,
                                     const c10d::AllgatherOptions& options) {
  const Checks check = checks("_allgather_base");
  check.contiguous(input);
  check.contiguous(output);
  check.same_dtype_and_device(output, input);
  check.gathered(output, input);

  all_gather_one(output, input, options);
  return complete({.op = OpType::_ALLGATHER_BASE,
                   .outputs = {output},
                   .inputs = {input},
                   .asynchronous = is_asynchronous(options)});
}

WorkPtr StubBackend::allgather_into_tensor_coalesced(Tensors& outputs,
                                                     Tensors& inputs,
                                                     const c10d::AllgatherOptions& options) {
  const Checks check = checks("allgather_into_tensor_coalesced");
  check.each_in_one_piece(inputs);
  check.each_in_one_piece(outputs);
  check.one_output_for_each_input(outputs.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    check.same_dtype_and_device(outputs[i], inputs[i]);
    check.gathered(outputs[i], inputs[i]);
  }

  for (size_t i = 0; i < inputs.size(); ++i) all_gather_one(outputs[i], inputs[i], options);
  return complete({.op = OpType::COALESCED,
                   .outputs = outputs,
                   .inputs = inputs,
                   .asynchronous = is_asynchronous(options)});
}

WorkPtr StubBackend::allgather_coalesced(std::vector<Tensors>& output_lists,
                                         Tensors& inputs,
                                         const c10d::AllgatherOptions& options) {
  const Checks check = checks("allgather_coalesced");
  check.in_one_piece(inputs);
  check.only_on_cpu(inputs.front());
  check.one_for_each_member(output_lists.size(), "output lists");
  for (const Tensors& outputs : output_lists) {
    check.one_output_for_each_input(outputs.size(), inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) check.alike(outputs[i], inputs[i]);
  }

  for (const at::Tensor& input : inputs) {
    record({.kind = CollectiveKind::kAllGather,
            .dtype = dtype_of(input),
            .bytes = getSize() * bytes_of(input),
            .asynchronous = is_asynchronous(options)});
  }
  write([&] {
    for (const Tensors& outputs : output_lists) {
      for (size_t i = 0; i < inputs.size(); ++i) write_entry(outputs[i], inputs[i]);
    }
  });
  return complete({.op = OpType::ALLGATHER_COALESCED,
                   .outputs = output_lists[static_cast<size_t>(getRank())],
                   .inputs = inputs,
                   .asynchronous = is_asynchronous(options)});
}

}  // namespace comm_stub
