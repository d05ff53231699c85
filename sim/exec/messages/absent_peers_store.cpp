#include "sim/exec/messages/absent_peers_store.h"

#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/exception.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <new>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "estimator/base/text.h"
#include "sim/exec/messages/peer_messages.h"
#include "sim/exec/program/settings.h"

namespace sim {
namespace {

constexpr size_t kUniqueIdBytes = 128;  // NCCL_UNIQUE_ID_BYTES
constexpr const char* kLoopback = "127.0.0.1";

using TcpStore = WithAbsentPeers<c10d::TCPStore>;
using FileStore = WithAbsentPeers<c10d::FileStore>;

// They take the place of objects of their base class.
static_assert(sizeof(TcpStore) == sizeof(c10d::TCPStore));
static_assert(sizeof(FileStore) == sizeof(c10d::FileStore));

/// ProcessGroupNCCL's keys end in the number of its communicator, in "low:high" for a pair of
/// ranks, or in the number of a root of ncclCommInitRankScalable. ProcessGroupNCCL2's, from torch
/// 2.15 on, end in a communicator's generation, to which the number of a root may be added.
bool is_unique_id(std::string_view key) {
  using estimator::is_digits;
  constexpr std::string_view kNccl2 = "nccl_storekey_";
  std::string_view last = key.substr(key.find_last_of('/') + 1);
  const bool is_nccl2 = last.substr(0, kNccl2.size()) == kNccl2;
  if (is_nccl2) last.remove_prefix(kNccl2.size());
  const size_t middle = last.find(is_nccl2 ? '_' : ':');
  if (middle == std::string_view::npos) return is_digits(last);
  const std::string_view before = last.substr(0, middle);
  return is_digits(last.substr(middle + 1)) && (is_digits(before) || before == "UniqueNCCLID");
}

/// The port that really serves the address that a program named: one of this process's own, so that
/// ranks which run side by side do not meet.
class ServedPorts {
 public:
  std::optional<uint16_t> find(const std::string& host, uint16_t port) {
    const std::lock_guard lock(mutex_);
    const auto found = ports_.find({host, port});
    if (found == ports_.end()) return std::nullopt;
    return found->second;
  }
  void add(const std::string& host, uint16_t port, uint16_t served) {
    const std::lock_guard lock(mutex_);
    ports_[{host, port}] = served;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, uint16_t>, uint16_t> ports_;
};

ServedPorts& served_ports() {
  static auto* const ports = new ServedPorts;
  return *ports;
}

std::function<void(const std::string&)>& refusal_listener() {
  static auto* const listener = new std::function<void(const std::string&)>;
  return *listener;
}

/// Objects of torch's classes have no room for it.
class MeetingPlaces {
 public:
  void set(const c10d::Store& store, std::string place) {
    const std::lock_guard lock(mutex_);
    places_[&store] = std::move(place);
  }
  std::string of(const c10d::Store& store) {
    const std::lock_guard lock(mutex_);
    return places_[&store];
  }

 private:
  std::mutex mutex_;
  std::map<const c10d::Store*, std::string> places_;
};

MeetingPlaces& meeting_places() {
  static auto* const places = new MeetingPlaces;
  return *places;
}

int64_t wanted_rank() {
  const char* text = std::getenv(kExecWantedRankVariable);
  return text == nullptr ? 0 : std::strtoll(text, nullptr, 10);
}

MessageName name_of(const c10d::Store& store, const std::string& key) {
  return {.line = {.group = "store " + meeting_places().of(store),
                   .kind = "key " + key,
                   .from = 0,
                   .to = MessageLine::kEveryone}};
}

}  // namespace

void set_meeting_place(const c10d::Store& store, std::string place) {
  meeting_places().set(store, std::move(place));
}

void say_value(const c10d::Store& store,
               const std::string& key,
               const std::vector<uint8_t>& value) {
  PeerMessages& messages = peer_messages();
  if (!messages.has_peers() || wanted_rank() != 0) return;
  messages.say(name_of(store, key),
               {.is_known = true,
                .size = static_cast<int64_t>(value.size()),
                .bytes = std::string(value.begin(), value.end())});
}

std::optional<std::vector<uint8_t>> value_of_rank_0(const c10d::Store& store,
                                                    const std::string& key,
                                                    bool waits) {
  PeerMessages& messages = peer_messages();
  const int64_t own_rank = wanted_rank();
  if (!messages.has_peers() || own_rank == 0) return std::nullopt;
  const MessageName name = name_of(store, key);
  const auto message = waits ? messages.wait_for(name, own_rank).message : messages.look_for(name);
  if (!message) return std::nullopt;
  return std::vector<uint8_t>(message->bytes.begin(), message->bytes.end());
}

std::optional<std::vector<uint8_t>> invented_value(const std::string& key) {
  if (!is_unique_id(key)) return std::nullopt;
  return std::vector<uint8_t>(kUniqueIdBytes, 7);
}

void set_refusal_listener(std::function<void(const std::string&)> listener) {
  refusal_listener() = std::move(listener);
}

/// For the program that started this one. Before it uses the GPU nothing else tells of it.
void tell_refusal(const std::string& what) {
  if (refusal_listener()) refusal_listener()(what);
  const char* folder = std::getenv(kExecFolderVariable);
  if (folder == nullptr) return;
  std::ofstream(std::filesystem::path(folder) / kRefusals, std::ios::app) << what << '\n';
}

void refuse_message(const std::string& what) {
  tell_refusal(what);
  C10_THROW_ERROR(DistBackendError, fmt::format("onerank exec: this rank waits for {}", what));
}

void refuse_shared_memory(const std::string& what) {
  tell_refusal(what);
  C10_THROW_ERROR(DistBackendError, "onerank exec: this rank cannot have " + what);
}

void refuse_to_invent(const std::string& key) {
  tell_refusal(fmt::format("store key \"{}\"", key));
  C10_THROW_ERROR(
      DistStoreError,
      fmt::format(
          "onerank exec: the program asks the store for the key \"{}\", which a rank that is "
          "not there would have set; its value cannot be invented",
          key));
}

void make_tcp_store(void* place, void* host, const void* options) {
  const auto& name = *static_cast<std::string*>(host);
  c10d::TCPStoreOptions own = *static_cast<const c10d::TCPStoreOptions*>(options);
  const uint16_t named_port = own.port;
  const auto served = served_ports().find(name, named_port);
  own.isServer = !served;
  own.port = served.value_or(0);
  own.numWorkers = std::nullopt;
  own.waitWorkers = false;
  own.masterListenFd = std::nullopt;
  const auto* store = new (place) TcpStore(kLoopback, own);
  set_meeting_place(*store, fmt::format("{}:{}", name, named_port));
  if (!served) served_ports().add(name, named_port, store->getPort());
}

void make_file_store(void* place, void* path, int workers) {
  std::string file = *static_cast<std::string*>(path);
  set_meeting_place(*new (place) FileStore(file, workers), file);
}

}  // namespace sim
