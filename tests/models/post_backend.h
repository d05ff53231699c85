// Groups of ranks that run side by side in threads and hand each other real tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <vector>

namespace models {

class FinishedWork final : public c10d::Work {
 public:
  bool isCompleted() override { return true; }
  bool wait(std::chrono::milliseconds) override { return true; }
};

/// Messages on their way, in order for each sender, receiver and tag.
class Post {
 public:
  void send(int from, int to, int tag, const at::Tensor& tensor) {
    const std::lock_guard lock(mutex_);
    boxes_[{from, to, tag}].push_back(tensor.clone());
    arrived_.notify_all();
  }

  at::Tensor receive(int from, int to, int tag) {
    std::unique_lock lock(mutex_);
    std::deque<at::Tensor>& box = boxes_[{from, to, tag}];
    if (!arrived_.wait_for(lock, std::chrono::seconds(60), [&] { return !box.empty(); })) {
      throw std::runtime_error("nothing was sent");
    }
    at::Tensor tensor = box.front();
    box.pop_front();
    return tensor;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::tuple<int, int, int>, std::deque<at::Tensor>> boxes_;
};

/// A message that is looked for once somebody waits for it, as one that is received ahead is.
class PendingReceive final : public c10d::Work {
 public:
  PendingReceive(Post& post, int from, int to, int tag, at::Tensor tensor)
      : post_(post), from_(from), to_(to), tag_(tag), tensor_(std::move(tensor)) {}

  bool wait(std::chrono::milliseconds) override {
    tensor_.copy_(post_.receive(from_, to_, tag_));
    return true;
  }

 private:
  Post& post_;
  int from_, to_, tag_;
  at::Tensor tensor_;
};

/// A group whose members share a Post.
class PostBackend final : public c10d::Backend {
 public:
  PostBackend(Post& post, int rank, int size) : c10d::Backend(rank, size), post_(post) {}

  c10::intrusive_ptr<c10d::Work> send(std::vector<at::Tensor>& tensors, int to, int tag) override {
    post_.send(getRank(), to, tag, tensors[0]);
    return c10::make_intrusive<FinishedWork>();
  }
  c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>& tensors,
                                      int from,
                                      int tag) override {
    return c10::make_intrusive<PendingReceive>(post_, from, getRank(), tag, tensors[0]);
  }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions&) override {
    for_each_other([&](int other) { post_.send(getRank(), other, 0, tensors[0]); });
    for_each_other([&](int other) { tensors[0].add_(post_.receive(other, getRank(), 0)); });
    return c10::make_intrusive<FinishedWork>();
  }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    const auto root = static_cast<int>(options.rootRank);
    if (getRank() == root) {
      for_each_other([&](int other) { post_.send(root, other, 0, tensors[0]); });
    } else {
      tensors[0].copy_(post_.receive(root, getRank(), 0));
    }
    return c10::make_intrusive<FinishedWork>();
  }
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& output,
                                                 at::Tensor& input,
                                                 const c10d::AllgatherOptions&) override {
    const auto part_of = [&](int member) { return output.view({getSize(), -1})[member]; };
    part_of(getRank()).copy_(input.flatten());
    for_each_other([&](int other) { post_.send(getRank(), other, 0, input.flatten()); });
    for_each_other([&](int other) { part_of(other).copy_(post_.receive(other, getRank(), 0)); });
    return c10::make_intrusive<FinishedWork>();
  }
  /// In equal parts along dim 0.
  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& output,
                                               at::Tensor& input,
                                               std::vector<int64_t>&,
                                               std::vector<int64_t>&,
                                               const c10d::AllToAllOptions&) override {
    const auto part_of = [this](const at::Tensor& tensor, int member) {
      return tensor.view({getSize(), -1})[member];
    };
    part_of(output, getRank()).copy_(part_of(input, getRank()));
    for_each_other([&](int other) { post_.send(getRank(), other, 0, part_of(input, other)); });
    for_each_other(
        [&](int other) { part_of(output, other).copy_(post_.receive(other, getRank(), 0)); });
    return c10::make_intrusive<FinishedWork>();
  }

 private:
  template <class Use>
  void for_each_other(const Use& use) const {
    for (int member = 0; member < getSize(); ++member) {
      if (member != getRank()) use(member);
    }
  }

  Post& post_;
};

}  // namespace models
