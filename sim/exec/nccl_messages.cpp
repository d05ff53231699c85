#include "sim/exec/nccl_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "sim/exec/collective_log.h"
#include "sim/exec/python.h"
#include "sim/exec/settings.h"

namespace sim {
namespace {

bool may_decide(const onerank_nccl_call& call) {
  constexpr std::string_view kWhole[] = {"Char", "Byte", "Int", "UInt32", "Long", "UInt64"};
  const bool is_whole =
      std::find(std::begin(kWhole), std::end(kWhole), call.dtype) != std::end(kWhole);
  return is_whole && call.bytes > 0 && call.bytes <= kLargestControlBytes;
}

/// How a call takes part in a message.
struct Part {
  MessageLine line;
  bool is_sender = false;
  void* address = nullptr;
};

/// Empty for a call that carries no message, and for one of a group that nobody knows.
std::optional<Part> part_in(const onerank_nccl_call& call, const CallingGroup& group) {
  const std::string_view kind = call.kind;
  const auto size = static_cast<int>(group.ranks.size());
  if (call.rank >= size || call.peer < 0 || call.peer >= size) return std::nullopt;
  const int64_t own = group.ranks[static_cast<size_t>(call.rank)];
  const int64_t peer = group.ranks[static_cast<size_t>(call.peer)];
  const std::string name = "nccl " + group.name;
  const auto buffer = [&](int i) { return const_cast<void*>(call.buffers[i]); };
  if (kind == "broadcast") {
    const bool is_root = own == peer;
    return Part{.line = {name, "broadcast", peer, MessageLine::kEveryone},
                .is_sender = is_root,
                .address = buffer(is_root ? 0 : call.buffer_count - 1)};
  }
  if (kind == "send") {
    return Part{.line = {name, "send", own, peer}, .is_sender = true, .address = buffer(0)};
  }
  if (kind == "recv") return Part{.line = {name, "send", peer, own}, .address = buffer(0)};
  return std::nullopt;
}

std::string described(const onerank_nccl_call& call, const CallingGroup& group, int64_t from) {
  const PythonLine line = python_line();
  return fmt::format("{} of {} bytes ({}) from rank {} over group {} of {} ranks{}{}",
                     call.kind,
                     call.bytes,
                     call.dtype,
                     from,
                     group.description,
                     call.size,
                     line.text.empty() ? "" : ", ",
                     line.text);
}

}  // namespace

void NcclMessages::called(const onerank_nccl_call& call, const VirtualGpu& gpu) {
  if (!may_decide(call)) return;
  const auto group = calling_group();
  const auto part = group ? part_in(call, *group) : std::nullopt;
  if (!part) return;
  const bool is_to_itself = part->line.from == part->line.to;
  if (group->collective.starts_with("all_to_all")) return exchange(call, is_to_itself, gpu);
  if (is_to_itself) return;
  PeerMessages& messages = peer_messages();
  const MessageName name = messages.next(part->line);
  if (part->is_sender) {
    if (!messages.has_peers()) return;
    PeerMessage message{.size = static_cast<int64_t>(call.bytes),
                        .bytes = std::string(call.bytes, '\0')};
    message.is_known = gpu.peek(part->address, call.bytes, message.bytes.data()) != 0;
    if (!message.is_known) message.bytes.clear();
    return messages.say(name, message);
  }
  if (!messages.has_peers() && gpu.peek(part->address, call.bytes, nullptr) != 0) {
    return take_for_own(described(call, *group, part->line.from));
  }
  Awaited awaited{.name = name,
                  .own_rank = group->ranks[static_cast<size_t>(call.rank)],
                  .address = part->address,
                  .bytes = call.bytes,
                  .text = described(call, *group, part->line.from)};
  const std::lock_guard lock(mutex_);
  if (messages.has_peers()) {
    awaited_.push_back(std::move(awaited));
    is_waiting_ = true;
  } else {
    missing_[reinterpret_cast<uint64_t>(awaited.address)] = std::move(awaited);
    is_missing_ = true;
  }
}

void NcclMessages::exchange(const onerank_nccl_call& call,
                            bool is_to_itself,
                            const VirtualGpu& gpu) {
  void* const address = const_cast<void*>(call.buffers[0]);
  const std::lock_guard lock(mutex_);
  if (std::string_view(call.kind) == "recv") {
    exchanged_.push_back({call.group, address, call.bytes});
    is_waiting_ = true;
  } else if (is_to_itself) {
    OwnChunk& chunk = own_chunks_[call.group];
    chunk.bytes.resize(call.bytes);
    chunk.known = gpu.peek(address, call.bytes, chunk.bytes.data());
  }
}

void NcclMessages::settle_exchanges(const std::vector<Exchanged>& exchanged,
                                    const std::map<uint64_t, OwnChunk>& own_chunks,
                                    const VirtualGpu& gpu) {
  for (const Exchanged& one : exchanged) {
    const auto own = own_chunks.find(one.group);
    const bool is_known =
        own != own_chunks.end() && own->second.known != 0 && own->second.bytes.size() == one.bytes;
    if (!is_known) {
      gpu.forget(one.address, one.bytes, UINT64_MAX);
    } else if (own->second.known == kOfTheHost) {
      gpu.send(one.address, one.bytes, own->second.bytes.data());
    } else {
      gpu.poke(one.address, one.bytes, own->second.bytes.data());
    }
  }
}

/// Alone, a rank takes the absent one to hold what it holds itself. If the program then fails, that
/// may be why.
void NcclMessages::take_for_own(const std::string& what) {
  constexpr int kMostTold = 8;
  if (told_++ >= kMostTold) return;
  const char* folder = std::getenv(kExecFolderVariable);
  if (folder == nullptr) return;
  std::ofstream(std::filesystem::path(folder) / kTakenForOwn, std::ios::app) << what << '\n';
}

void NcclMessages::settle_all(const VirtualGpu& gpu, const Refuse& refuse) {
  std::vector<Awaited> awaited;
  std::vector<Exchanged> exchanged;
  std::map<uint64_t, OwnChunk> own_chunks;
  {
    const std::lock_guard lock(mutex_);
    awaited.swap(awaited_);
    exchanged.swap(exchanged_);
    own_chunks.swap(own_chunks_);
    is_waiting_ = false;
  }
  settle_exchanges(exchanged, own_chunks, gpu);
  for (const Awaited& one : awaited) {
    const PeerAnswer answer = peer_messages().wait_for(one.name, one.own_rank);
    if (!answer.message) {
      refuse(one.text + ": " + answer.why_not);
    } else if (answer.message->size != static_cast<int64_t>(one.bytes)) {
      refuse(fmt::format("{}: it sends {} bytes", one.text, answer.message->size));
    } else if (answer.message->is_known) {
      gpu.send(one.address, one.bytes, answer.message->bytes.data());
    } else {
      gpu.forget(one.address, one.bytes, UINT64_MAX);
    }
  }
}

void NcclMessages::forget_missing(const void* address, uint64_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  const std::lock_guard lock(mutex_);
  std::erase_if(missing_, [&](const auto& entry) {
    return begin < entry.first + entry.second.bytes && entry.first < begin + bytes;
  });
  is_missing_ = !missing_.empty();
}

std::string NcclMessages::missing_at(const void* address, uint64_t bytes) const {
  const auto begin = reinterpret_cast<uint64_t>(address);
  const std::lock_guard lock(mutex_);
  for (const auto& [at, awaited] : missing_) {
    if (begin < at + awaited.bytes && at < begin + bytes) {
      return fmt::format("{}: rank {} was not run", awaited.text, awaited.name.line.from);
    }
  }
  return "";
}

}  // namespace sim
