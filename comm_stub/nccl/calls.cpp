#include "comm_stub/nccl/calls.h"

#include <atomic>
#include <mutex>

#include "comm_stub/nccl/nccl_control.h"

namespace nccl {
namespace {

struct Host {
  std::mutex mutex;
  void (*sink)(const onerank_nccl_call*, void*) = nullptr;
  void (*answered)(void*) = nullptr;
  int (*group_size)(void*) = nullptr;
  void* context = nullptr;
};

/// Never destroyed: programs still call NCCL while they end.
Host& host() {
  static Host* const host = new Host;
  return *host;
}

struct OpenGroups {
  int depth = 0;
  uint64_t number = 0;  // of the outermost one
};
thread_local OpenGroups open_groups;

}  // namespace

int ask_group_size() {
  const std::lock_guard lock(host().mutex);
  return host().group_size == nullptr ? 0 : host().group_size(host().context);
}

void record(const Call& call) {
  const onerank_nccl_call told{.communicator = call.communicator.number,
                               .communicator_name = call.communicator.name.c_str(),
                               .size = call.communicator.size,
                               .rank = call.communicator.rank,
                               .kind = call.kind,
                               .dtype = call.type.name,
                               .bytes = call.bytes,
                               .peer = call.peer,
                               .stream = call.stream,
                               .group = open_groups.depth > 0 ? open_groups.number : 0,
                               .buffers = call.buffers.data(),
                               .buffer_count = static_cast<int>(call.buffers.size())};
  const std::lock_guard lock(host().mutex);
  if (host().sink != nullptr) host().sink(&told, host().context);
}

void answered() {
  const std::lock_guard lock(host().mutex);
  if (host().answered != nullptr) host().answered(host().context);
}

void open_group() {
  static std::atomic<uint64_t> groups{0};
  if (open_groups.depth++ == 0) open_groups.number = ++groups;
}

bool close_group() {
  if (open_groups.depth == 0) return false;
  --open_groups.depth;
  return true;
}

}  // namespace nccl

extern "C" void onerank_nccl_set_host(void (*sink)(const onerank_nccl_call*, void*),
                                      void (*answered)(void*),
                                      int (*group_size)(void*),
                                      void* context) {
  nccl::Host& host = nccl::host();
  const std::lock_guard lock(host.mutex);
  host.sink = sink;
  host.answered = answered;
  host.group_size = group_size;
  host.context = context;
}
