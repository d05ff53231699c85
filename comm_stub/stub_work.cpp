#include "comm_stub/stub_work.h"

#include <utility>

namespace comm_stub {
namespace {

/// Without storages to follow the future records no CUDA event: there is nothing to wait for.
c10::intrusive_ptr<c10::ivalue::Future> completed_future(c10::TypePtr type, c10::IValue value) {
  auto future = c10::make_intrusive<c10::ivalue::Future>(std::move(type));
  future->markCompleted(std::move(value), std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>>{});
  return future;
}

}  // namespace

StubWork::StubWork(
    int rank, c10d::OpType op, Held held, std::function<void()> waited, int source_rank)
    : Work(rank, op),
      held_(std::move(held)),
      waited_(std::move(waited)),
      source_rank_(source_rank) {
  finish();
}

bool StubWork::wait(std::chrono::milliseconds) {
  synchronize();
  return true;
}

void StubWork::synchronize() {
  held_.until_wait.clear();
  if (const auto waited = std::exchange(waited_, nullptr)) waited();
}

c10::intrusive_ptr<c10::ivalue::Future> StubWork::getFuture() {
  return completed_future(c10::ListType::ofTensors(), held_.outputs);
}

c10::intrusive_ptr<c10::ivalue::Future> StubWork::getFutureResult() {
  return completed_future(c10::IntType::get(), static_cast<int64_t>(c10d::WorkResult::SUCCESS));
}

}  // namespace comm_stub
