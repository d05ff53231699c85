#include "sim/verify/ranks/world_watch.h"

#include <fmt/format.h>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "sim/verify/ranks/deadline.h"

namespace sim {
namespace {

using estimator::Problem;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kGlance{100};
constexpr seconds kBetweenSigns{1};

std::string sign_key(int64_t rank) { return fmt::format("alive/{}", rank); }

Problem silent(int64_t rank) {
  return {.what = fmt::format("rank {} is gone", rank),
          .where = fmt::format("no sign of life for {} s", kLongestSilence.count()),
          .help = "look at the output of that rank and at its machine"};
}

Problem silent_keeper(const WorldSeat& seat) {
  return {.what = "rank 0, which keeps the world's store, is gone",
          .where = fmt::format("rank {} had no answer from port {} on {} for {} s",
                               seat.rank,
                               seat.port,
                               seat.host,
                               kLongestSilence.count()),
          .help = "check whether that process was stopped by a signal"};
}

}  // namespace

WorldWatch::WorldWatch(const WorldSeat& seat, seconds timeout)
    : seat_(seat), store_(connect_store(seat, timeout)), thread_([this] { watch(); }) {}

WorldWatch::~WorldWatch() {
  stop_ = true;
  thread_.join();
}

void WorldWatch::watch() {
  while (!stop_) {
    try {
      const Deadline deadline(kLongestSilence, silent_keeper(seat_));  // a client waits for ever
      look_once();
    } catch (const std::exception&) {
      if (stop_) return;
      end_process(
          {.what = "rank 0, which keeps the world's store, is gone",
           .where = fmt::format("rank {} lost port {} on {}", seat_.rank, seat_.port, seat_.host),
           .help = "look at the output of rank 0 and at its machine"});
    }
    std::this_thread::sleep_for(kGlance);
  }
}

void WorldWatch::look_once() {
  if (const auto failure = posted_failure(*store_)) {
    if (seat_.keeps_store) std::this_thread::sleep_for(seconds(1));  // the others read it first
    end_process(*failure);
  }
  if (Clock::now() - last_given_ < kBetweenSigns) return;
  give_sign();
  if (seat_.rank == 0) look_for_silence();
}

void WorldWatch::give_sign() {
  last_given_ = Clock::now();
  set_text(*store_, sign_key(seat_.rank), std::to_string(++given_));
}

void WorldWatch::look_for_silence() {
  for (int64_t rank = 1; rank < seat_.size; ++rank) {
    if (!store_->check({sign_key(rank)})) continue;  // it has not come yet
    Sign& sign = signs_[rank];
    const std::string value = get_text(*store_, sign_key(rank));
    if (value != sign.value) {
      sign = {.value = value, .seen = Clock::now()};
    } else if (Clock::now() - sign.seen > kLongestSilence) {
      post_failure(*store_, silent(rank));
    }
  }
}

}  // namespace sim
