#include <numeric>

#include "comm_stub/stub_backend_impl.h"
#include "comm_stub/values.h"

namespace comm_stub {

using c10d::OpType;
using estimator::CollectiveKind;

namespace {

int64_t elements_of_row(const at::Tensor& tensor) {
  return tensor.size(0) == 0 ? 0 : tensor.numel() / tensor.size(0);
}

/// What `input` has for member `index` of `members`; no split sizes: equal chunks.
at::Tensor piece_for(int64_t index,
                     int64_t members,
                     const at::Tensor& input,
                     const std::vector<int64_t>& split_sizes) {
  if (split_sizes.empty()) return equal_piece(input, members, index);
  const auto own = split_sizes.begin() + index;
  const int64_t row = std::accumulate(split_sizes.begin(), own, int64_t{0});
  return piece(input, row * elements_of_row(input), *own * elements_of_row(input));
}

/// `received` from each of `members`; no split sizes: into equal chunks.
void write_from_each(int64_t members,
                     const at::Tensor& received,
                     const at::Tensor& output,
                     const std::vector<int64_t>& split_sizes) {
  if (split_sizes.empty()) return write_in_slots(output, received, members);
  const int64_t row_elements = elements_of_row(output);
  int64_t row = 0;
  for (const int64_t rows : split_sizes) {
    write_in_slots(piece(output, row * row_elements, rows * row_elements), received, 1);
    row += rows;
  }
}

}  // namespace

WorkPtr StubBackend::alltoall_base(at::Tensor& output,
                                   at::Tensor& input,
                                   std::vector<int64_t>& output_split_sizes,
                                   std::vector<int64_t>& input_split_sizes,
                                   const c10d::AllToAllOptions& options) {
  const Checks check = checks("alltoall_base");
  check.contiguous(output);
  check.contiguous(input);
  check.same_dtype_and_device(output, input);
  check.splits(output, output_split_sizes);
  check.splits(input, input_split_sizes);

  record({.kind = CollectiveKind::kAllToAll,
          .dtype = dtype_of(input),
          .bytes = bytes_of(input),
          .asynchronous = is_asynchronous(options)});
  write([&] {
    // A peer that holds what this rank holds sends what this rank would send itself.
    const at::Tensor received = piece_for(getRank(), getSize(), input, input_split_sizes);
    write_from_each(getSize(), received, output, output_split_sizes);
  });
  return complete({.op = OpType::ALLTOALL_BASE,
                   .outputs = {output},
                   .inputs = {input},
                   .asynchronous = is_asynchronous(options)});
}

WorkPtr StubBackend::alltoall(Tensors& outputs,
                              Tensors& inputs,
                              const c10d::AllToAllOptions& options) {
  const Checks check = checks("alltoall");
  check.in_one_piece(inputs);
  check.one_for_each_member(inputs.size(), "inputs");
  check.entries(outputs, inputs[static_cast<size_t>(getRank())], getRank());
  for (const at::Tensor& tensor : inputs) check.contiguous(tensor);
  for (const at::Tensor& tensor : outputs) check.contiguous(tensor);

  record({.kind = CollectiveKind::kAllToAll,
          .dtype = dtype_of(inputs.front()),
          .bytes = bytes_of(inputs),
          .asynchronous = is_asynchronous(options)});
  write([&] {
    const at::Tensor& received = inputs[static_cast<size_t>(getRank())];
    for (const at::Tensor& output : outputs) write_entry(output, received);
  });
  return complete({.op = OpType::ALLTOALL,
                   .outputs = outputs,
                   .inputs = inputs,
                   .asynchronous = is_asynchronous(options)});
}

WorkPtr StubBackend::send(Tensors& tensors, int destination, int) {
  const Checks check = checks("send");
  const at::Tensor& tensor = check.only(tensors);
  check.in_one_piece(tensor);
  check_peer(check, destination, "destination");

  record_message(CollectiveKind::kSend, tensor, destination);
  return complete({.op = OpType::SEND, .outputs = tensors});
}

WorkPtr StubBackend::recv(Tensors& tensors, int source, int) {
  const Checks check = checks("recv");
  const at::Tensor& tensor = check.only(tensors);
  check.in_one_piece(tensor);
  check_peer(check, source, "source");

  record_message(CollectiveKind::kRecv, tensor, source);
  write([&] { write_unknown(tensor); });
  return complete({.op = OpType::RECV, .outputs = tensors});
}

WorkPtr StubBackend::recvAnysource(Tensors& tensors, int) {
  const Checks check = checks("recvAnysource");
  const at::Tensor& tensor = check.only(tensors);
  check.in_one_piece(tensor);
  check.only_on_cpu(tensor);

  const int source = is_me(0) ? 1 : 0;
  record_message(CollectiveKind::kRecv, tensor, source);
  write([&] { write_unknown(tensor); });
  return complete({.op = OpType::RECVANYSOURCE, .outputs = tensors, .source = source});
}

}  // namespace comm_stub
