#include "comm_stub/stub_backend_impl.h"
#include "comm_stub/values.h"

namespace comm_stub {

using c10d::OpType;
using estimator::CollectiveKind;

namespace {

/// The list of the root: one entry for each member, like `own`. Other members give no list.
Tensors list_of_root(const Checks& check,
                     const std::vector<Tensors>& lists,
                     const at::Tensor& own,
                     bool is_root) {
  if (!is_root) {
    if (!lists.empty()) check.refuse("only the root gives a list, got {}", lists.size());
    return {};
  }
  const Tensors& entries = check.only(lists);
  check.one_for_each_member(entries.size(), "entries");
  for (const at::Tensor& entry : entries) {
    check.contiguous(entry);
    check.alike(entry, own);
  }
  return entries;
}

}  // namespace

WorkPtr StubBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const Checks check = checks("broadcast");
  const at::Tensor& tensor = check.only(tensors);
  check.contiguous(tensor);
  check.member(options.rootRank, "root");

  record({.kind = CollectiveKind::kBroadcast,
          .dtype = dtype_of(tensor),
          .bytes = bytes_of(tensor),
          .peer = options.rootRank,
          .asynchronous = is_asynchronous(options)});
  if (!is_me(options.rootRank)) write([&] { write_unknown(tensor); });
  return complete(
      {.op = OpType::BROADCAST, .outputs = tensors, .asynchronous = is_asynchronous(options)});
}

WorkPtr StubBackend::gather(std::vector<Tensors>& output_lists,
                            Tensors& inputs,
                            const c10d::GatherOptions& options) {
  const Checks check = checks("gather");
  const at::Tensor& input = check.only(inputs);
  check.contiguous(input);
  check.member(options.rootRank, "root");
  Tensors outputs = list_of_root(check, output_lists, input, is_me(options.rootRank));

  record({.kind = CollectiveKind::kGather,
          .dtype = dtype_of(input),
          .bytes = getSize() * bytes_of(input),
          .peer = options.rootRank,
          .asynchronous = is_asynchronous(options)});
  write([&] {
    for (const at::Tensor& output : outputs) write_entry(output, input);
  });
  return complete({.op = OpType::GATHER,
                   .outputs = std::move(outputs),
                   .inputs = inputs,
                   .asynchronous = is_asynchronous(options)});
}

WorkPtr StubBackend::scatter(Tensors& outputs,
                             std::vector<Tensors>& input_lists,
                             const c10d::ScatterOptions& options) {
  const Checks check = checks("scatter");
  const at::Tensor& output = check.only(outputs);
  check.contiguous(output);
  check.member(options.rootRank, "root");
  const bool is_root = is_me(options.rootRank);
  Tensors inputs = list_of_root(check, input_lists, output, is_root);

  record({.kind = CollectiveKind::kScatter,
          .dtype = dtype_of(output),
          .bytes = getSize() * bytes_of(output),
          .peer = options.rootRank,
          .asynchronous = is_asynchronous(options)});
  write([&] {
    if (is_root) {
      write_entry(output, inputs[static_cast<size_t>(getRank())]);
    } else {
      write_unknown(output);
    }
  });
  return complete({.op = OpType::SCATTER,
                   .outputs = outputs,
                   .kept = std::move(inputs),
                   .asynchronous = is_asynchronous(options)});
}

}  // namespace comm_stub
