#include "sim/verify/ranks/world.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "sim/verify/ranks/deadline.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::Json;
using estimator::Problem;
using estimator::UserError;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string about_key(int64_t rank) { return fmt::format("about/{}", rank); }

/// The first place where two documents differ, with both values.
std::string first_difference(const Json& here, const Json& there) {
  const Json patch = Json::diff(there, here);
  const std::string path = patch.at(0).at("path").get<std::string>();
  const auto value = [&](const Json& document) {
    const Json::json_pointer pointer(path);
    return document.contains(pointer) ? document.at(pointer).dump() : std::string("missing");
  };
  return fmt::format("{} = {}, at rank 0 {}", path.substr(1), value(here), value(there));
}

}  // namespace

World::World(const WorldSeat& seat, const WorldTimeouts& timeouts, const Json& about)
    : seat_(seat), timeouts_(timeouts), store_(open_store(seat, timeouts.join)) {
  if (store_->add(fmt::format("came/{}", seat.rank), 1) != 1) {
    throw UserError({.what = fmt::format("rank {} has come already", seat.rank),
                     .where = fmt::format("the world at port {} on {}", seat.port, seat.host),
                     .help = "another world uses the port: give another one as MASTER_PORT"},
                    ExitCode::kMachineLacks);
  }
  watch_ = std::make_unique<WorldWatch>(seat, timeouts.join);
  check_all_are_about(about);
}

World::~World() = default;

std::optional<std::string> World::wait_for(const std::string& key, milliseconds timeout) {
  try {
    store_->wait({key}, timeout);
    return get_text(*store_, key);
  } catch (const c10::Error&) {
    return std::nullopt;  // the watch ends this process if the store is gone
  }
}

void World::check_all_are_about(const Json& about) {
  set(about_key(seat_.rank), about.dump());
  const auto end = std::chrono::steady_clock::now() + timeouts_.join;
  for (int64_t rank = 0; rank < seat_.size; ++rank) {
    const auto left =
        std::max(std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now()),
                 milliseconds(1));
    const auto text = wait_for(about_key(rank), left);
    if (!text) {
      fail({.what = fmt::format("rank {} did not come", rank),
            .where = fmt::format(
                "the world of {} ranks waited {} s for it", seat_.size, timeouts_.join.count()),
            .help = "start every rank, or give --join-timeout more time"},
           Blame::kThisRank);
    }
    if (rank != 0 || seat_.rank == 0) continue;
    const Json there = estimator::parse_json(*text, "store");
    if (there == about) continue;
    fail({.what = fmt::format("rank {} is about to run something other than rank 0", seat_.rank),
          .where = first_difference(about, there),
          .help = "start all ranks with the same program, plan and flags"},
         Blame::kThisRank);
  }
}

void World::set(const std::string& key, const std::string& value) { set_text(*store_, key, value); }

std::string World::get(const std::string& key, int64_t from) {
  if (const auto text = wait_for(key, timeouts_.collective)) return *text;
  fail({.what = fmt::format("rank {} did not finish", from),
        .where = fmt::format(
            "rank {} waited {} s for its {}", seat_.rank, timeouts_.collective.count(), key),
        .help = "give --timeout more time"},
       Blame::kPerhapsAPeer);
}

void World::fail(const Problem& problem, Blame blame) {
  // A peer that is gone breaks connections at once, but is only found silent later.
  constexpr seconds kUntilSilenceIsFound = kLongestSilence + seconds(3);
  if (blame == Blame::kPerhapsAPeer) std::this_thread::sleep_for(kUntilSilenceIsFound);
  try {
    post_failure(*store_, problem);
    std::this_thread::sleep_for(seconds(5));  // the watch reads it and ends this process
  } catch (const std::exception&) {
  }
  end_process(problem);
}

void World::leave() {
  watch_.reset();
  const int64_t left = store_->add("left", 1);
  if (seat_.rank != 0) return;
  const auto end = std::chrono::steady_clock::now() + kLongestSilence;
  for (int64_t gone = left; gone < seat_.size && std::chrono::steady_clock::now() < end;) {
    std::this_thread::sleep_for(milliseconds(5));
    gone = store_->add("left", 0);
  }
}

void report_failure(const WorldSeat& seat, const Problem& problem) {
  try {
    WorldSeat guest = seat;
    guest.keeps_store = false;
    post_failure(*connect_store(guest, seconds(2), problem), problem);
  } catch (const UserError&) {
    // The store is gone with its keeper, which the others notice by themselves.
  }
}

}  // namespace sim
