#include "comm_stub/reduce_ops.h"
#include "comm_stub/stub_backend_impl.h"
#include "comm_stub/values.h"

namespace comm_stub {

using c10d::OpType;
using estimator::CollectiveKind;

void StubBackend::all_reduce_one(const at::Tensor& tensor, const c10d::AllreduceOptions& options) {
  record({.kind = CollectiveKind::kAllReduce,
          .dtype = dtype_of(tensor),
          .bytes = bytes_of(tensor),
          .asynchronous = is_asynchronous(options)});
  write([&] { reduce_copies(tensor, options.reduceOp, getSize()); });
}

WorkPtr StubBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const Checks check = checks("allreduce");
  const at::Tensor& tensor = check.only(tensors);
  check.contiguous(tensor);
  check_reduce_op(check, options.reduceOp, tensor);

  all_reduce_one(tensor, options);
  return complete(
      {.op = OpType::ALLREDUCE, .outputs = tensors, .asynchronous = is_asynchronous(options)});
}

WorkPtr StubBackend::allreduce_sparse(Tensors&, const c10d::AllreduceOptions&) {
  checks("allreduce_sparse").refuse("sparse tensors are not supported; give dense ones");
}

WorkPtr StubBackend::allreduce_coalesced(Tensors& tensors,
                                         const c10d::AllreduceCoalescedOptions& options) {
  const Checks check = checks("allreduce_coalesced");
  check.in_one_piece(tensors);
  check_reduce_op(check, options.reduceOp, tensors.front());

  for (const at::Tensor& tensor : tensors) all_reduce_one(tensor, options);
  return complete({.op = OpType::ALLREDUCE_COALESCED,
                   .outputs = tensors,
                   .asynchronous = is_asynchronous(options)});
}

WorkPtr StubBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const Checks check = checks("reduce");
  const at::Tensor& tensor = check.only(tensors);
  check.contiguous(tensor);
  check.member(options.rootRank, "root");
  check_reduce_op(check, options.reduceOp, tensor);

  record({.kind = CollectiveKind::kReduce,
          .dtype = dtype_of(tensor),
          .bytes = bytes_of(tensor),
          .peer = options.rootRank,
          .asynchronous = is_asynchronous(options)});
  if (is_me(options.rootRank)) {
    write([&] { reduce_copies(tensor, options.reduceOp, getSize()); });
  }
  return complete(
      {.op = OpType::REDUCE, .outputs = tensors, .asynchronous = is_asynchronous(options)});
}

WorkPtr StubBackend::reduce_scatter(Tensors& outputs,
                                    std::vector<Tensors>& input_lists,
                                    const c10d::ReduceScatterOptions& options) {
  const Checks check = checks("reduce_scatter");
  const at::Tensor& output = check.only(outputs);
  const Tensors& inputs = check.only(input_lists);
  check.contiguous(output);
  check.entries(inputs, output, getRank());
  check_reduce_op(check, options.reduceOp, output);

  record({.kind = CollectiveKind::kReduceScatter,
          .dtype = dtype_of(output),
          .bytes = bytes_of(inputs),
          .asynchronous = is_asynchronous(options)});
  Tensors held = flat_buffer(inputs);
  held.insert(held.end(), inputs.begin(), inputs.end());
  write([&] {
    write_entry(output, inputs[static_cast<size_t>(getRank())]);
    reduce_copies(output, options.reduceOp, getSize());
  });
  return complete({.op = OpType::REDUCE_SCATTER,
                   .outputs = outputs,
                   .inputs = std::move(held),
                   .asynchronous = is_asynchronous(options)});
}

void StubBackend::reduce_scatter_one(const at::Tensor& output,
                                     const at::Tensor& input,
                                     const c10d::ReduceScatterOptions& options) {
  record({.kind = CollectiveKind::kReduceScatter,
          .dtype = dtype_of(input),
          .bytes = bytes_of(input),
          .asynchronous = is_asynchronous(options)});
  write([&] {
    write_in_slots(output, equal_piece(input, getSize(), getRank()), 1);
    reduce_copies(output, options.reduceOp, getSize());
  });
}

WorkPtr StubBackend::_reduce_scatter_base(at::Tensor& output,
                                          at::Tensor& input,
                                          const c10d::ReduceScatterOptions& options) {
  const Checks check = checks("_reduce_scatter_base");
  check.contiguous(output);
  check.contiguous(input);
  check.same_dtype_and_device(output, input);
  check.gathered(input, output);
  check_reduce_op(check, options.reduceOp, output);

  reduce_scatter_one(output, input, options);
  return complete({.op = OpType::_REDUCE_SCATTER_BASE,
                   .outputs = {output},
                   .inputs = {input},
                   .asynchronous = is_asynchronous(options)});
}

WorkPtr StubBackend::reduce_scatter_tensor_coalesced(Tensors& outputs,
                                                     Tensors& inputs,
                                                     const c10d::ReduceScatterOptions& options) {
  const Checks check = checks("reduce_scatter_tensor_coalesced");
  check.in_one_piece(inputs);
  check.in_one_piece(outputs);
  check.one_output_for_each_input(outputs.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    check.same_dtype_and_device(outputs[i], inputs[i]);
    check.gathered(inputs[i], outputs[i]);
    check_reduce_op(check, options.reduceOp, inputs[i]);
  }

  for (size_t i = 0; i < inputs.size(); ++i) reduce_scatter_one(outputs[i], inputs[i], options);
  return complete({.op = OpType::COALESCED,
                   .outputs = outputs,
                   .inputs = inputs,
                   .asynchronous = is_asynchronous(options)});
}

}  // namespace comm_stub
