#include "sim/verify/ranks/world_store.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "sim/verify/ranks/deadline.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::Problem;
using estimator::UserError;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

constexpr const char* kFailureKey = "failure";

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

std::string first_line(const c10::Error& error) {
  const std::string message = error.what_without_backtrace();
  return message.substr(0, message.find('\n'));
}

Problem cannot_open(const WorldSeat& seat, const std::string& why) {
  return {.what = fmt::format("rank {} cannot open the world's store", seat.rank),
          .where = fmt::format("port {} on {}: {}", seat.port, seat.host, why),
          .help = "end what uses the port, or give another one as MASTER_PORT"};
}

Problem cannot_reach(const WorldSeat& seat, std::chrono::seconds timeout, const std::string& why) {
  return {
      .what = fmt::format("rank {} found no world within {} s", seat.rank, timeout.count()),
      .where = fmt::format("port {} on {}{}", seat.port, seat.host, why.empty() ? "" : ": " + why),
      .help = "rank 0 keeps the store there: start it too, or look at its output"};
}

StorePtr make_store(const WorldSeat& seat, bool is_server, std::chrono::seconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(seat.port);
  options.isServer = is_server;
  options.waitWorkers = false;
  options.timeout = timeout;
  if (is_server) options.masterListenFd = seat.listening_socket;
  return c10::make_intrusive<c10d::PrefixStore>(
      seat.store_prefix, c10::make_intrusive<c10d::TCPStore>(seat.host, options));
}

}  // namespace

StorePtr connect_store(const WorldSeat& seat, std::chrono::seconds timeout) {
  return connect_store(
      seat,
      timeout,
      cannot_reach(seat, timeout, "the program that listens at this port does not answer"));
}

StorePtr connect_store(const WorldSeat& seat,
                       std::chrono::seconds timeout,
                       const Problem& when_silent) {
  // Something else may listen at the port and never answer: that has no timeout in TCPStore.
  const Deadline deadline(timeout + std::chrono::seconds(1), when_silent);
  try {
    return make_store(seat, /*is_server=*/false, timeout);
  } catch (const c10::Error& error) {
    throw UserError(cannot_reach(seat, timeout, first_line(error)), ExitCode::kMachineLacks);
  }
}

StorePtr open_store(const WorldSeat& seat, std::chrono::seconds timeout) {
  if (!seat.keeps_store) return connect_store(seat, timeout);
  try {
    return make_store(seat, /*is_server=*/true, timeout);
  } catch (const c10::Error& error) {
    throw UserError(cannot_open(seat, first_line(error)), ExitCode::kMachineLacks);
  }
}

void set_text(c10d::Store& store, const std::string& key, const std::string& text) {
  store.set(key, bytes_of(text));
}

std::string get_text(c10d::Store& store, const std::string& key) {
  const std::vector<uint8_t> bytes = store.get(key);
  return {bytes.begin(), bytes.end()};
}

void post_failure(c10d::Store& store, const Problem& problem) {
  const estimator::Json json = {
      {"what", problem.what}, {"where", problem.where}, {"help", problem.help}};
  store.compareSet(kFailureKey, {}, bytes_of(json.dump()));
}

std::optional<Problem> posted_failure(c10d::Store& store) {
  if (!store.check({kFailureKey})) return std::nullopt;
  const estimator::Json json = estimator::parse_json(get_text(store, kFailureKey), "store");
  return Problem{.what = json.at("what").get<std::string>(),
                 .where = json.at("where").get<std::string>(),
                 .help = json.at("help").get<std::string>()};
}

}  // namespace sim
