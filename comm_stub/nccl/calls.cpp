#include "comm_stub/nccl/calls.h"

#include <atomic>
#include <mutex>

#include "comm_stub/nccl/nccl_control.h"

namespace nccl {
namespace {

struct Host {
  void (*sink)(const onerank_nccl_call*, void*) = nullptr;
  void (*answered)(void*) = nullptr;
  int (*group_size)(void*) = nullptr;
  void* context = nullptr;
};

struct KeptHost {
  std::mutex mutex;
  Host host;
};

/// Never destroyed: programs still call NCCL while they end.
KeptHost& kept_host() {
  static auto* const kept = new KeptHost;
  return *kept;
}

/// A copy, so that nothing is locked while the host is called: it may wait for other threads.
Host host() {
  const std::lock_guard lock(kept_host().mutex);
  return kept_host().host;
}

struct OpenGroups {
  int depth = 0;
  uint64_t number = 0;  // of the outermost one
};
thread_local OpenGroups open_groups;

}  // namespace

int ask_group_size() {
  const Host asked = host();
  return asked.group_size == nullptr ? 0 : asked.group_size(asked.context);
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
  const Host asked = host();
  if (asked.sink != nullptr) asked.sink(&told, asked.context);
}

void answered() {
  const Host asked = host();
  if (asked.answered != nullptr) asked.answered(asked.context);
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
  nccl::KeptHost& kept = nccl::kept_host();
  const std::lock_guard lock(kept.mutex);
  kept.host = {.sink = sink, .answered = answered, .group_size = group_size, .context = context};
}
