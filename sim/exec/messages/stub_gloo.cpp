#include "sim/exec/messages/stub_gloo.h"

#include <fmt/format.h>
#include <malloc.h>

#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>
#include <vector>

#include "comm_stub/stub_backend.h"
#include "comm_stub/torch_release.h"
#include "sim/exec/messages/absent_answers.h"
#include "sim/exec/messages/absent_peers_store.h"
#include "sim/exec/messages/barriers.h"
#include "sim/exec/messages/peer_messages.h"
#include "sim/exec/program/python.h"
#include "sim/exec/program/virtual_gpu_control.h"

namespace sim {
namespace {

using c10d::Backend;
using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

/// Objects of checkpoints and settings. Tensors of other types are weights, of which no rank is
/// told.
constexpr uint64_t kLargestObject = uint64_t{256} << 20;
constexpr uint64_t kLargestNumbers = kLargestControlBytes;

bool is_exchanged(const at::Tensor& tensor) {
  const bool is_whole = c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/true);
  return tensor.nbytes() <= (is_whole ? kLargestObject : kLargestNumbers);
}

void say_to_peers(const MessageLine& line, const at::Tensor& tensor) {
  PeerMessages& messages = peer_messages();
  if (!messages.has_peers() || !is_exchanged(tensor)) return;
  messages.say(
      messages.next(line),
      {.is_known = true,
       .size = static_cast<int64_t>(tensor.nbytes()),
       .bytes = std::string(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes())});
}

/// Whether messages have the size of what they fill. Objects that are gathered are padded to the
/// longest of those that their rank knows.
enum class MessageSize { kEqual, kPadded };

/// Why `tensor` could not be filled, or "". Alone, numbers that are not whole stay zeros.
std::string ask_peers(const MessageLine& line,
                      int64_t own_rank,
                      const at::Tensor& tensor,
                      MessageSize size = MessageSize::kEqual) {
  PeerMessages& messages = peer_messages();
  if (!is_exchanged(tensor)) return "";
  if (!messages.has_peers() && !c10::isIntegralType(tensor.scalar_type(), true)) return "";
  const PeerAnswer answer = messages.wait_for(messages.next(line), own_rank);
  if (!answer.message) return answer.why_not;
  std::string bytes = answer.message->bytes;
  if (size == MessageSize::kEqual && bytes.size() != tensor.nbytes()) {
    return fmt::format("it sends {} bytes", answer.message->size);
  }
  bytes.resize(tensor.nbytes());
  std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return "";
}

/// Which group of torch.distributed a ProcessGroupGloo belongs to.
#if TORCH_VERSION_MINOR < 9
/// Its options do not say so: the name is a prefix of its store, and Python has the ranks.
class GlooGroup {
 public:
  GlooGroup(const c10d::Store& store, const Backend::Options&) : name_(name_in(store)) {}
  const std::string& name() const { return name_; }
  std::string description() const { return ""; }
  std::vector<int64_t> ranks() const { return ranks_of_group(name_); }

 private:
  struct Prefix : c10d::PrefixStore {
    static std::string of(const c10d::PrefixStore& store) { return store.*(&Prefix::prefix_); }
  };

  /// Python wraps the store twice: PrefixStore("cpu/", PrefixStore("<name>/", store)).
  static std::string name_in(const c10d::Store& store) {
    const auto* device = dynamic_cast<const c10d::PrefixStore*>(&store);
    if (device == nullptr) return "";
    const auto inner = const_cast<c10d::PrefixStore*>(device)->getUnderlyingStore();
    const auto* group = dynamic_cast<const c10d::PrefixStore*>(inner.get());
    if (group == nullptr) return "";
    std::string name = Prefix::of(*group);
    if (name.ends_with('/')) name.pop_back();
    return name;
  }

  std::string name_;
};
#else
class GlooGroup {
 public:
  GlooGroup(const c10d::Store&, const Backend::Options& options) : options_(options) {}
  const std::string& name() const { return options_.group_name; }
  std::string description() const { return description_in(options_); }
  const std::vector<uint64_t>& ranks() const { return options_.global_ranks_in_group; }

 private:
  template <class Options>  // torch 2.11's have one
  static std::string description_in(const Options& options) {
    if constexpr (requires { options.group_desc; }) {
      return options.group_desc;
    }
    return "";
  }

  const Backend::Options& options_;
};
#endif

/// Hands every call on to the stub. Python reads `options` of a ProcessGroupGloo without a virtual
/// function: up to there the members are those of that class (ProcessGroupGloo.hpp).
class StubGloo final : public comm_stub::Backend {
 public:
  StubGloo(const c10d::Store& store,
           int rank,
           int size,
           c10::intrusive_ptr<Options> options,
           c10::intrusive_ptr<c10d::Backend> stub)
      : Backend(rank, size),
        options_(std::move(options)),
        stub_(std::move(stub)),
        group_(store, *options_) {}

  const std::string getBackendName() const override { return "gloo"; }
  c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }
  void setTimeout(std::chrono::milliseconds) override {}
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return stub_->getSequenceNumberForGroup(); }
  void waitForPendingWorks() override {}
  void monitoredBarrier(const c10d::BarrierOptions&, bool) override { pass(); }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    WorkPtr work = stub_->broadcast(tensors, options);
    const auto root = options.rootRank;
    exchange("broadcast", root, MessageLine::kEveryone, tensors.front());
    return work;
  }
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    note_copies("all_reduce");
    return stub_->allreduce(tensors, options);
  }
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override {
    note_copies("all_reduce");
    return stub_->allreduce_coalesced(tensors, options);
  }
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    note_copies("reduce");
    return stub_->reduce(tensors, options);
  }
  WorkPtr allgather(std::vector<Tensors>& outputs,
                    Tensors& inputs,
                    const c10d::AllgatherOptions& options) override {
    WorkPtr work = stub_->allgather(outputs, inputs, options);
    gather("all_gather", MessageLine::kEveryone, inputs.front(), outputs.front());
    return work;
  }
  WorkPtr _allgather_base(at::Tensor& output,
                          at::Tensor& input,
                          const c10d::AllgatherOptions& options) override {
    WorkPtr work = stub_->_allgather_base(output, input, options);
    if (!output.is_contiguous() || output.numel() == 0) return work;
    const at::Tensor all = output.view({size_, output.numel() / size_});
    gather("all_gather", MessageLine::kEveryone, input, all.unbind());
    return work;
  }
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs,
                              Tensors& inputs,
                              const c10d::AllgatherOptions& options) override {
    note_copies("all_gather");
    return stub_->allgather_coalesced(outputs, inputs, options);
  }
  WorkPtr gather(std::vector<Tensors>& outputs,
                 Tensors& inputs,
                 const c10d::GatherOptions& options) override {
    WorkPtr work = stub_->gather(outputs, inputs, options);
    const auto root = options.rootRank;
    gather("gather", root, inputs.front(), root == rank_ ? outputs.front() : Tensors());
    return work;
  }
  WorkPtr scatter(Tensors& outputs,
                  std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& options) override {
    WorkPtr work = stub_->scatter(outputs, inputs, options);
    const auto root = options.rootRank;
    if (root != rank_) {
      exchange("scatter", root, rank_, outputs.front());
    } else {
      for (int member = 0; member < size_; ++member) {
        if (member == rank_) continue;
        exchange("scatter", root, member, inputs.front()[static_cast<size_t>(member)]);
      }
    }
    return work;
  }
  WorkPtr reduce_scatter(Tensors& outputs,
                         std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override {
    note_copies("reduce_scatter");
    return stub_->reduce_scatter(outputs, inputs, options);
  }
  WorkPtr _reduce_scatter_base(at::Tensor& output,
                               at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override {
    note_copies("reduce_scatter");
    return stub_->_reduce_scatter_base(output, input, options);
  }
  WorkPtr alltoall_base(at::Tensor& output,
                        at::Tensor& input,
                        std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits,
                        const c10d::AllToAllOptions& options) override {
    note_copies("all_to_all");
    return stub_->alltoall_base(output, input, output_splits, input_splits, options);
  }
  WorkPtr send(Tensors& tensors, int destination, int tag) override {
    WorkPtr work = stub_->send(tensors, destination, tag);
    exchange(message_with(tag), rank_, destination, tensors.front());
    return work;
  }
  WorkPtr recv(Tensors& tensors, int source, int tag) override {
    WorkPtr work = stub_->recv(tensors, source, tag);
    exchange(message_with(tag), source, rank_, tensors.front());
    return work;
  }
  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    return stub_->recvAnysource(tensors, tag);
  }
  WorkPtr barrier(const c10d::BarrierOptions& options) override {
    pass();
    return stub_->barrier(options);
  }

 private:
  static std::string message_with(int tag) { return fmt::format("message with tag {}", tag); }

  void pass() const {
    BarrierCall call = {
        .group = group_name(), .description = described_group(), .own_rank = rank_of_world(rank_)};
    for (int member = 0; member < size_; ++member) call.ranks.push_back(rank_of_world(member));
    pass_barrier(call);
  }

  std::string group_name() const { return "gloo " + group_.name(); }
  std::string described_group() const {
    return group_.description().empty() ? "of gloo" : group_.description();
  }

  int64_t rank_of_world(int64_t member) const {
    const auto& ranks = group_.ranks();
    const auto index = static_cast<size_t>(member);
    return index < ranks.size() ? static_cast<int64_t>(ranks[index]) : member;
  }

  MessageLine line_of(const std::string& kind, int64_t from, int64_t to) const {
    return {.group = group_name(),
            .kind = kind,
            .from = rank_of_world(from),
            .to = to == MessageLine::kEveryone ? MessageLine::kEveryone : rank_of_world(to)};
  }

  void note(const std::string& kind, const std::string& why) const {
    note_absent_answer({.kind = kind, .group = described_group(), .members = size_, .why = why});
  }

  void note_copies(const char* kind) const {
    if (size_ > 1) note(kind, kTakenAsEqual);
  }

  /// Says what this member holds. Where it gets what all hold, `outputs` has a tensor for each
  /// member, filled with copies of this one's: those of members that are asked for are heard.
  void gather(const std::string& kind,
              int64_t to,
              const at::Tensor& input,
              const Tensors& outputs) const {
    const bool is_heard = input.is_cpu() && input.is_contiguous() && is_exchanged(input);
    if (is_heard && to != rank_) say_to_peers(line_of(kind, rank_, to), input);
    int64_t absent = 0;
    for (int member = 0; member < static_cast<int>(outputs.size()); ++member) {
      if (member == rank_) continue;
      const at::Tensor& output = outputs[static_cast<size_t>(member)];
      if (!is_heard || !output.is_contiguous() ||
          !peer_messages().is_asked(rank_of_world(member))) {
        ++absent;
        continue;
      }
      const std::string why_not =
          ask_peers(line_of(kind, member, to), rank_of_world(rank_), output, MessageSize::kPadded);
      if (!why_not.empty()) note(kind, why_not);
    }
    if (absent > 0) note(kind, why_not_run(absent, size_));
  }

  /// Says what `tensor` holds, or fills it with what the absent member says.
  void exchange(const std::string& kind, int64_t from, int64_t to, const at::Tensor& tensor) const {
    const MessageLine line = line_of(kind, from, to);
    if (!tensor.is_cpu() || tensor.nbytes() == 0 || !tensor.is_contiguous()) return;
    if (from == rank_) return say_to_peers(line, tensor);
    const std::string why_not = ask_peers(line, rank_of_world(rank_), tensor);
    if (why_not.empty()) return;
    const PythonLine python = python_line();
    refuse_message(
        fmt::format("a {} of {} bytes ({}) from rank {} over group {} of {} ranks{}{}: {}",
                    kind,
                    tensor.nbytes(),
                    c10::toString(tensor.scalar_type()),
                    line.from,
                    described_group(),
                    size_,
                    python.text.empty() ? "" : ", ",
                    python.text,
                    why_not));
  }

  // Gloo's; here for its place.
#if TORCH_VERSION_MINOR < 8
  std::unique_ptr<int> store_;
#else
  std::shared_ptr<void> store_;
#endif
  c10::intrusive_ptr<Options> options_;
  c10::intrusive_ptr<c10d::Backend> stub_;
  GlooGroup group_;
};

}  // namespace

void make_gloo(void* place, const void* store, int rank, int size, void* options) {
  // c10's intrusive_ptr allocated the object by itself: its size is that of the block.
  if (malloc_usable_size(place) < sizeof(StubGloo)) {
    throw std::logic_error("ProcessGroupGloo of this torch is smaller than the stub");
  }
  const estimator::RankGroup group{.kind = estimator::GroupKind::kWorld,
                                   .spans = {{.count = size, .stride = 1}}};
  auto stub = comm_stub::make_stub_backend(group, rank, [](const estimator::CollectiveCall&) {});
  auto& given = *static_cast<c10::intrusive_ptr<Backend::Options>*>(options);
  const auto& its_store = *static_cast<const c10::intrusive_ptr<c10d::Store>*>(store);
  new (place) StubGloo(*its_store, rank, size, given, std::move(stub));
}

}  // namespace sim
