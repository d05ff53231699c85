#include "sim/exec/messages/nccl_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "sim/exec/program/python.h"
#include "sim/exec/values/running_operators.h"

namespace sim {
namespace {

bool has_whole_numbers(const onerank_nccl_call& call) {
  constexpr std::string_view kWhole[] = {"Char", "Byte", "Int", "UInt32", "Long", "UInt64"};
  return std::find(std::begin(kWhole), std::end(kWhole), call.dtype) != std::end(kWhole);
}

/// Of such calls only those of a gather are followed if they carry no whole numbers: all others may
/// carry activations.
bool is_message(std::string_view kind) { return kind == "send" || kind == "recv"; }

bool is_small(uint64_t bytes) { return bytes > 0 && bytes <= kLargestControlBytes; }

/// Of a collective in which all others are taken to hold what this rank holds.
void note_copies(const char* kind, const onerank_nccl_call& call, const CallingGroup& group) {
  if (call.size < 2) return;
  note_absent_answer(
      {.kind = kind, .group = group.description, .members = call.size, .why = kTakenAsEqual});
}

/// How many of the bytes are known before the first that is not: of an object that was padded, all
/// that count.
uint64_t known_beginning(const void* address, uint64_t bytes, const VirtualGpu& gpu) {
  uint64_t known = 0;
  for (uint64_t unknown = bytes + 1; unknown - known > 1;) {
    const uint64_t tried = unknown > bytes ? bytes : known + (unknown - known) / 2;
    (gpu.peek(address, tried, nullptr) != 0 ? known : unknown) = tried;
  }
  return known;
}

PeerMessage message_at(const void* address, uint64_t bytes, const VirtualGpu& gpu) {
  PeerMessage message{.size = static_cast<int64_t>(bytes)};
  if (!is_small(bytes)) return message;
  const uint64_t known = known_beginning(address, bytes, gpu);
  message.is_known = known > 0;
  message.bytes.resize(known);
  if (message.is_known) gpu.peek(address, known, message.bytes.data());
  return message;
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

/// One of the broadcasts of which torch makes an all-gather into a list.
bool is_of_gather(const onerank_nccl_call& call, const CallingGroup& group) {
  return std::string_view(call.kind) == "broadcast" && group.collective.starts_with("all_gather");
}

bool has_every_member(const onerank_nccl_call& call, const CallingGroup& group) {
  const auto known = static_cast<int>(group.ranks.size());
  return call.size == known && call.rank < known && call.peer < known;
}

/// torch makes a gather at one rank of messages to it.
bool gathers_at_root(const CallingGroup& group) { return group.collective == "gather"; }

/// What `rank` gives to an all-gather, or to a gather at one rank.
MessageLine gathered(const onerank_nccl_call& call, const CallingGroup& group, int64_t rank) {
  const std::string name = "nccl " + group.name;
  if (!gathers_at_root(group)) return {name, call.kind, rank, MessageLine::kEveryone};
  const bool is_root = std::string_view(call.kind) == "recv";
  const int root = is_root ? call.rank : call.peer;
  return {name, group.collective, rank, group.ranks[static_cast<size_t>(root)]};
}

/// A collective of which absent members are taken to give what this one gives.
const char* kind_of_gather(const CallingGroup& group) {
  return gathers_at_root(group) ? "gather" : "all_gather";
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
  const std::string_view kind = call.kind;
  const bool gathers = kind == "all_gather";
  const bool is_answered_alone = is_reduction(kind) || kind == "all_to_all";
  const bool may_be_followed = has_whole_numbers(call) || is_answered_alone || is_message(kind);
  if (!may_be_followed || (!gathers && !is_small(call.bytes))) return;
  const auto group = calling_group(call);
  if (!group || group->collective == "barrier") return;
  if (!has_whole_numbers(call) && is_message(kind) && !gathers_at_root(*group)) return;
  if (is_answered_alone) {
    if (gpu.peek(call.buffers[0], call.bytes, nullptr) != 0) note_copies(call.kind, call, *group);
    return;
  }
  if (gathers) return gather(call, *group, gpu);
  if (is_of_gather(call, *group)) return gather_from(call, *group, gpu);
  if (gathers_at_root(*group)) return gather_at_root(call, *group, gpu);
  const auto part = part_in(call, *group);
  if (!part) return;
  const bool is_to_itself = part->line.from == part->line.to;
  if (group->collective.starts_with("all_to_all")) {
    return exchange(call, *group, is_to_itself, gpu);
  }
  if (is_to_itself) return;
  PeerMessages& messages = peer_messages();
  const MessageName name = messages.next(part->line);
  if (part->is_sender) {
    if (messages.has_peers()) messages.say(name, message_at(part->address, call.bytes, gpu));
    return;
  }
  if (!messages.has_peers() && gpu.peek(part->address, call.bytes, nullptr) != 0) {
    return note_absent_answer({.kind = call.kind,
                               .group = group->description,
                               .members = call.size,
                               .why = fmt::format("rank {} was not run", part->line.from)});
  }
  Awaited awaited{.name = name,
                  .own_rank = group->ranks[static_cast<size_t>(call.rank)],
                  .address = part->address,
                  .bytes = call.bytes,
                  .text = described(call, *group, part->line.from)};
  await({std::move(awaited)});
}

/// Says what this rank gives to a gather. What it knows is then the others', too, but for those
/// that are asked.
void NcclMessages::say_own(const onerank_nccl_call& call,
                           const CallingGroup& group,
                           const MemoryRange& given,
                           const VirtualGpu& gpu) {
  PeerMessages& messages = peer_messages();
  const PeerMessage own = message_at(given.address, given.bytes, gpu);
  const int64_t own_rank = group.ranks[static_cast<size_t>(call.rank)];
  if (messages.has_peers()) messages.say(messages.next(gathered(call, group, own_rank)), own);
  const auto absent = std::count_if(group.ranks.begin(), group.ranks.end(), [&](int64_t rank) {
    return rank != own_rank && !messages.is_asked(rank);
  });
  if (absent == 0 || !own.is_known) return;
  note_absent_answer({.kind = kind_of_gather(group),
                      .group = group.description,
                      .members = call.size,
                      .why = why_not_run(absent, call.size)});
}

/// What `rank` gives to a gather, which will lie at the address.
NcclMessages::Awaited NcclMessages::gathered_from(const onerank_nccl_call& call,
                                                  const CallingGroup& group,
                                                  int64_t rank,
                                                  void* address,
                                                  uint64_t bytes) {
  return {.name = peer_messages().next(gathered(call, group, rank)),
          .own_rank = group.ranks[static_cast<size_t>(call.rank)],
          .address = address,
          .bytes = bytes,
          .text = {},
          .copy = {}};
}

/// Notes that it is awaited, if this rank is asked.
void NcclMessages::await_copy(const onerank_nccl_call& call,
                              const CallingGroup& group,
                              int64_t rank,
                              void* address,
                              uint64_t bytes) {
  if (!peer_messages().is_asked(rank)) return;
  Awaited awaited = gathered_from(call, group, rank, address, bytes);
  awaited.copy =
      AbsentAnswer{.kind = kind_of_gather(group), .group = group.description, .members = call.size};
  const std::lock_guard lock(mutex_);
  awaited_.push_back(std::move(awaited));
  is_waiting_ = true;
}

void NcclMessages::gather(const onerank_nccl_call& call,
                          const CallingGroup& group,
                          const VirtualGpu& gpu) {
  if (!has_every_member(call, group)) return;
  const uint64_t bytes = call.bytes / group.ranks.size();
  say_own(call, group, {const_cast<void*>(call.buffers[0]), bytes}, gpu);
  auto* const received = static_cast<char*>(const_cast<void*>(call.buffers[1]));
  for (size_t place = 0; place < group.ranks.size(); ++place) {
    if (static_cast<int>(place) == call.rank) continue;
    await_copy(call, group, group.ranks[place], received + place * bytes, bytes);
  }
}

void NcclMessages::gather_from(const onerank_nccl_call& call,
                               const CallingGroup& group,
                               const VirtualGpu& gpu) {
  if (!has_every_member(call, group)) return;
  if (call.peer == call.rank) {
    const MemoryRange own = {const_cast<void*>(call.buffers[0]), call.bytes};
    say_own(call, group, own, gpu);
    return keep_own(call.group, own, gpu);
  }
  void* const address = const_cast<void*>(call.buffers[call.buffer_count - 1]);
  const int64_t rank = group.ranks[static_cast<size_t>(call.peer)];
  const bool is_asked = peer_messages().is_asked(rank);
  await_copy(call, group, rank, address, call.bytes);
  std::optional<Awaited> otherwise;
  if (!is_asked) {
    otherwise = gathered_from(call, group, rank, address, call.bytes);
    otherwise->text = described(call, group, rank);
  }
  const std::lock_guard lock(mutex_);
  exchanged_.push_back({call.group, address, call.bytes, std::move(otherwise)});
  is_waiting_ = true;
}

void NcclMessages::gather_at_root(const onerank_nccl_call& call,
                                  const CallingGroup& group,
                                  const VirtualGpu& gpu) {
  if (!has_every_member(call, group)) return;
  void* const address = const_cast<void*>(call.buffers[0]);
  if (std::string_view(call.kind) == "send") {  // what the root gets is not assumed here
    PeerMessages& messages = peer_messages();
    const int64_t own_rank = group.ranks[static_cast<size_t>(call.rank)];
    const MessageName name = messages.next(gathered(call, group, own_rank));
    if (messages.has_peers()) messages.say(name, message_at(address, call.bytes, gpu));
    return;
  }
  if (!keeps_own(call.group)) {  // the first message; the root copies what it gives itself
    const MemoryRange own = RunningOperators::given_to_root();
    say_own(call, group, own, gpu);
    keep_own(call.group, own, gpu);
  }
  await_copy(call, group, group.ranks[static_cast<size_t>(call.peer)], address, call.bytes);
  const std::lock_guard lock(mutex_);
  exchanged_.push_back({call.group, address, call.bytes, {}});
  is_waiting_ = true;
}

void NcclMessages::exchange(const onerank_nccl_call& call,
                            const CallingGroup& group,
                            bool is_to_itself,
                            const VirtualGpu& gpu) {
  if (std::string_view(call.kind) == "recv") {
    const std::lock_guard lock(mutex_);
    exchanged_.push_back({call.group, const_cast<void*>(call.buffers[0]), call.bytes, {}});
    is_waiting_ = true;
  } else if (is_to_itself) {
    keep_own(call.group, {const_cast<void*>(call.buffers[0]), call.bytes}, gpu);
    if (gpu.peek(call.buffers[0], call.bytes, nullptr) != 0) note_copies("all_to_all", call, group);
  }
}

void NcclMessages::keep_own(uint64_t group, const MemoryRange& given, const VirtualGpu& gpu) {
  OwnChunk own{.size = given.bytes};
  own.bytes.resize(known_beginning(given.address, given.bytes, gpu));
  if (!own.bytes.empty()) own.known = gpu.peek(given.address, own.bytes.size(), own.bytes.data());
  const std::lock_guard lock(mutex_);
  own_chunks_[group] = std::move(own);
}

bool NcclMessages::keeps_own(uint64_t group) const {
  const std::lock_guard lock(mutex_);
  return own_chunks_.count(group) > 0;
}

std::vector<NcclMessages::Awaited> NcclMessages::settle_exchanges(
    const std::vector<Exchanged>& exchanged,
    const std::map<uint64_t, OwnChunk>& own_chunks,
    const VirtualGpu& gpu) {
  std::vector<Awaited> otherwise;
  for (const Exchanged& one : exchanged) {
    const auto own = own_chunks.find(one.group);
    const bool is_known =
        own != own_chunks.end() && own->second.known != 0 && own->second.size == one.bytes;
    gpu.forget(one.address, one.bytes, UINT64_MAX);
    if (!is_known) {
      if (one.otherwise) otherwise.push_back(*one.otherwise);
      continue;
    }
    const std::string& bytes = own->second.bytes;
    const bool is_of_host = own->second.known == ONERANK_VIRTUAL_GPU_OF_THE_HOST;
    (is_of_host ? gpu.send : gpu.poke)(one.address, bytes.size(), bytes.data());
  }
  return otherwise;
}

/// Where ranks run side by side a message is waited for, else it is missing.
void NcclMessages::await(std::vector<Awaited> awaited) {
  const bool waits = peer_messages().has_peers();
  const std::lock_guard lock(mutex_);
  for (Awaited& one : awaited) {
    if (waits) {
      awaited_.push_back(std::move(one));
      is_waiting_ = true;
    } else {
      missing_[reinterpret_cast<uint64_t>(one.address)] = std::move(one);
      is_missing_ = true;
    }
  }
}

void NcclMessages::settle_message(const Awaited& awaited,
                                  const PeerMessage& message,
                                  const VirtualGpu& gpu) {
  gpu.forget(awaited.address, awaited.bytes, UINT64_MAX);
  const uint64_t known = std::min<uint64_t>(awaited.bytes, message.bytes.size());
  if (known > 0) gpu.send(awaited.address, known, message.bytes.data());
}

void NcclMessages::settle_all(const VirtualGpu& gpu, const Refuse& refuse) {
  std::vector<Awaited> awaited;
  std::vector<Exchanged> exchanged;
  std::map<uint64_t, OwnChunk> own_chunks;
  {
    const std::lock_guard lock(mutex_);
    exchanged.swap(exchanged_);
    own_chunks.swap(own_chunks_);
  }
  await(settle_exchanges(exchanged, own_chunks, gpu));
  {
    const std::lock_guard lock(mutex_);
    awaited.swap(awaited_);
    is_waiting_ = false;
  }
  for (const Awaited& one : awaited) {
    const PeerAnswer answer = peer_messages().wait_for(one.name, one.own_rank);
    const bool is_of_this_size =
        answer.message && answer.message->size == static_cast<int64_t>(one.bytes);
    if (answer.message && (is_of_this_size || one.copy)) {
      settle_message(one, *answer.message, gpu);
    } else if (one.copy) {
      AbsentAnswer copy = *one.copy;
      copy.why = answer.why_not;
      note_absent_answer(copy);
    } else {
      refuse(one.text + ": " +
             (answer.message ? fmt::format("it sends {} bytes", answer.message->size)
                             : answer.why_not));
    }
  }
}

bool NcclMessages::reads_any_awaited(const onerank_nccl_call& call) const {
  if (std::string_view(call.kind) == "recv") return false;
  const auto* const begin = static_cast<const char*>(call.buffers[0]);
  const std::lock_guard lock(mutex_);
  return std::any_of(awaited_.begin(), awaited_.end(), [&](const Awaited& one) {
    const auto* const awaited = static_cast<const char*>(one.address);
    return begin < awaited + one.bytes && awaited < begin + call.bytes;
  });
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
