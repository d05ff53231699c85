#include "sim/exec/messages/symmetric_exchange.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>

#include "estimator/base/number_text.h"
#include "sim/exec/messages/absent_peers_store.h"
#include "sim/exec/program/python.h"
#include "sim/exec/program/variables.h"

namespace sim {
namespace {

/// ".../GROUP//CUDASymmetricMemory/NUMBER/RANK", where the rank is that in its group. (Before torch
/// 2.9 there is more between the group and the rest.)
struct RecordKey {
  std::string exchange;  ///< all before the rank
  std::string group;     ///< its name, as far as it is there
  int64_t rank = 0;
};

std::optional<RecordKey> parse_key(const std::string& key) {
  constexpr std::string_view kName = "/CUDASymmetricMemory/";
  const size_t name = key.find(kName);
  const size_t slash = key.find_last_of('/');
  if (name == std::string::npos || slash < name + kName.size()) return std::nullopt;
  const auto rank = estimator::parse_number<int64_t>(std::string_view(key).substr(slash + 1));
  if (!rank) return std::nullopt;
  std::string group = key.substr(0, name);
  while (group.ends_with('/')) group.pop_back();
  return RecordKey{.exchange = key.substr(0, slash),
                   .group = group.substr(group.find_last_of('/') + 1),
                   .rank = *rank};
}

struct OwnRecord {
  int64_t rank = 0;
  std::vector<uint8_t> value;
};

class OwnRecords {
 public:
  void set(const std::string& exchange, OwnRecord record) {
    const std::lock_guard lock(mutex_);
    records_[exchange] = std::move(record);
  }
  std::optional<OwnRecord> find(const std::string& exchange) const {
    const std::lock_guard lock(mutex_);
    const auto found = records_.find(exchange);
    if (found == records_.end()) return std::nullopt;
    return found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, OwnRecord> records_;
};

OwnRecords& own_records() {
  static auto* const records = new OwnRecords;
  return *records;
}

/// Devices of a machine, as the launcher of this rank says.
int64_t devices_of_machine() {
  const char* text = std::getenv("LOCAL_WORLD_SIZE");
  return text == nullptr ? 0 : std::strtoll(text, nullptr, 10);
}

/// File descriptors do not travel between machines.
void check_machine(const std::string& group) {
  const std::vector<int64_t> ranks = ranks_of_group(group);
  const int64_t devices = devices_of_machine();
  const bool is_known = !ranks.empty() && devices > 0;
  if (!is_known || ranks.front() / devices == ranks.back() / devices) return;
  refuse_shared_memory(fmt::format("memory that group {} shares with {} (GPUs of a machine: {})",
                                   group,
                                   kOnOtherMachines,
                                   devices));
}

/// How the record of a rank's memory begins (RendezvousRequest of CUDASymmetricMemory.cu).
struct Whose {
  int device;
  int process;
};

/// torch refuses ranks that share a device. Other records, which are flags, stay as they are.
void move_to_device(std::vector<uint8_t>& record, int64_t distance) {
  Whose whose;
  if (record.size() < sizeof whose) return;
  std::memcpy(&whose, record.data(), sizeof whose);
  if (whose.process != getpid()) return;
  whose.device += static_cast<int>(distance);
  std::memcpy(record.data(), &whose, sizeof whose);
}

}  // namespace

void note_own_record(const std::string& key, const std::vector<uint8_t>& value) {
  if (const auto parsed = parse_key(key)) {
    own_records().set(parsed->exchange, {parsed->rank, value});
  }
}

std::optional<std::vector<uint8_t>> record_of_absent_rank(const std::string& key) {
  const auto parsed = parse_key(key);
  const auto own = parsed ? own_records().find(parsed->exchange) : std::nullopt;
  if (!own) return std::nullopt;
  check_machine(parsed->group);
  std::vector<uint8_t> record = own->value;
  move_to_device(record, parsed->rank - own->rank);
  return record;
}

}  // namespace sim
