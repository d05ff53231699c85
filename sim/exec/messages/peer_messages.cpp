#include "sim/exec/messages/peer_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "estimator/base/errors.h"
#include "estimator/base/files.h"
#include "estimator/base/stable_hash.h"
#include "estimator/base/text.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* kSaid = "said";
constexpr const char* kAsked = "asked";
constexpr const char* kWanted = "wanted";
constexpr const char* kStarted = "started";
constexpr const char* kEnded = "ended";
constexpr const char* kWaits = "waits";
constexpr const char* kStates[] = {kSaid, kAsked, kWanted, kStarted, kEnded, kWaits};

/// Nobody reads half a file. The folder is gone when the whole run ends.
void write_at_once(const fs::path& path, const std::string& text) {
  try {
    estimator::write_file_whole(path.string(), text);
  } catch (const estimator::UserError&) {
    std::error_code ignored;
    if (fs::exists(path.parent_path(), ignored)) throw;
  }
}

std::optional<std::string> read_if_there(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

fs::path state_of(const fs::path& folder, const char* state, int64_t rank) {
  return folder / state / std::to_string(rank);
}

/// A state's folder may hold half-written files too.
std::set<int64_t> ranks_in(const fs::path& state) {
  std::set<int64_t> ranks;
  std::error_code ignored;  // the folder is gone when the whole run ends
  for (const auto& entry : fs::directory_iterator(state, ignored)) {
    const std::string name = entry.path().filename().string();
    if (estimator::is_digits(name)) ranks.insert(std::strtoll(name.c_str(), nullptr, 10));
  }
  return ranks;
}

}  // namespace

std::string MessageName::text() const {
  return fmt::format(
      "{} of {} from {} to {} number {}", line.kind, line.group, line.from, line.to, number);
}

PeerMessages::PeerMessages(fs::path folder) : folder_(std::move(folder)) {}

fs::path PeerMessages::file_of(const MessageName& name) const {
  return state_of(folder_, kSaid, name.line.from) /
         fmt::format("{:016x}", estimator::stable_hash(name.text()));
}

MessageName PeerMessages::next(const MessageLine& line) {
  const std::lock_guard lock(mutex_);
  return {line, numbers_[{line.group, line.kind, line.from, line.to}]++};
}

void PeerMessages::say(const MessageName& name, const PeerMessage& message) {
  be_started(name.line.from);
  write_at_once(file_of(name),
                fmt::format("{}\n{} {}\n{}",
                            name.text(),
                            message.is_known ? "known" : "unknown",
                            message.size,
                            message.bytes));
}

std::optional<PeerMessage> PeerMessages::find(const MessageName& name) const {
  const auto text = read_if_there(file_of(name));
  if (!text) return std::nullopt;
  const size_t first = text->find('\n');
  const size_t second = text->find('\n', first + 1);
  if (second == text->npos || text->substr(0, first) != name.text()) return std::nullopt;
  std::istringstream facts(text->substr(first + 1, second - first - 1));
  std::string known;
  PeerMessage message;
  facts >> known >> message.size;
  message.is_known = known == "known";
  message.bytes = text->substr(second + 1);
  return message;
}

void PeerMessages::be_started(int64_t rank) {
  const std::lock_guard lock(mutex_);
  if (!started_.insert(rank).second) return;
  std::error_code ignored;
  fs::create_directories(state_of(folder_, kSaid, rank), ignored);
  write_at_once(state_of(folder_, kStarted, rank), "");
}

std::string PeerMessages::circle(int64_t from, int64_t own_rank) const {
  std::string text = fmt::format("rank {} waits for rank {}", own_rank, from);
  std::set<int64_t> met = {own_rank};
  for (int64_t rank = from; met.insert(rank).second;) {
    const auto next = read_if_there(state_of(folder_, kWaits, rank));
    if (!next || !estimator::is_digits(*next)) return "";
    rank = std::strtoll(next->c_str(), nullptr, 10);
    text += fmt::format(", which waits for rank {}", rank);
    if (rank == own_rank) return text;
  }
  return "";
}

bool PeerMessages::is_started(int64_t rank) const {
  return has_peers() && fs::exists(state_of(folder_, kStarted, rank));
}

bool PeerMessages::is_asked(int64_t rank) {
  if (!has_peers()) return false;
  const std::lock_guard lock(mutex_);
  if (!asked_) asked_ = ranks_in(folder_ / kAsked);
  return asked_->count(rank) > 0;
}

void PeerMessages::want(int64_t rank) const {
  if (!is_started(rank)) write_at_once(state_of(folder_, kWanted, rank), "");
}

std::optional<PeerMessage> PeerMessages::look_for(const MessageName& name) const {
  if (!has_peers()) return std::nullopt;
  auto message = find(name);
  if (!message) want(name.line.from);
  return message;
}

PeerAnswer PeerMessages::wait_for(const MessageName& name, int64_t own_rank) {
  using namespace std::chrono_literals;
  const int64_t from = name.line.from;
  if (!has_peers()) return {std::nullopt, fmt::format("rank {} was not run", from)};
  if (auto message = find(name)) return {std::move(message), ""};
  be_started(own_rank);
  const fs::path waits = state_of(folder_, kWaits, own_rank);
  write_at_once(waits, std::to_string(from));
  want(from);
  PeerAnswer answer;
  int times_in_circle = 0;
  for (auto pause = 1ms; !answer.message && answer.why_not.empty();) {
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, 50ms);
    const bool has_ended = fs::exists(state_of(folder_, kEnded, from));
    const std::string in_circle = circle(from, own_rank);
    answer.message = find(name);  // last: it may have been said in the meantime
    if (answer.message) break;
    if (has_ended) answer.why_not = fmt::format("rank {} has ended and did not send it", from);
    // A rank that found its message still says for a moment that it waits.
    times_in_circle = in_circle.empty() ? 0 : times_in_circle + 1;
    if (times_in_circle > 20) answer.why_not = in_circle;
  }
  std::error_code ignored;
  fs::remove(waits, ignored);
  return answer;
}

PeerMessages& peer_messages() {
  static auto* const messages = [] {
    const char* folder = std::getenv(kPeersVariable);
    return new PeerMessages(folder == nullptr ? "" : folder);
  }();
  return *messages;
}

PeerRanks::PeerRanks(const fs::path& folder) : folder_(folder) {
  for (const char* state : kStates) fs::create_directories(folder_ / state);
}

void PeerRanks::asked(int64_t rank) const { write_at_once(state_of(folder_, kAsked, rank), ""); }

void PeerRanks::started(int64_t rank) const {
  write_at_once(state_of(folder_, kStarted, rank), "");
}

void PeerRanks::ended(int64_t rank) const { write_at_once(state_of(folder_, kEnded, rank), ""); }

bool PeerRanks::is_waiting(int64_t rank) const {
  return fs::exists(state_of(folder_, kWaits, rank));
}

std::set<int64_t> PeerRanks::wanted() const {
  std::set<int64_t> ranks = ranks_in(folder_ / kWanted);
  std::erase_if(ranks, [&](int64_t rank) { return fs::exists(state_of(folder_, kStarted, rank)); });
  return ranks;
}

}  // namespace sim
