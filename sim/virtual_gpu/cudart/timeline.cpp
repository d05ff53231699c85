#include "sim/virtual_gpu/cudart/timeline.h"

#include <algorithm>
#include <chrono>

namespace virtual_gpu {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// Questions of a thread that were answered "not yet", since it last did something else.
struct Poll {
  bool gives_work = false;
  int refusals = 0;
  SteadyClock::time_point start;

  void end() { refusals = 0; }

  /// One more; true when it has asked often and long enough.
  bool is_over() {
    const auto now = SteadyClock::now();
    if (refusals++ == 0) start = now;
    return refusals > Timeline::kRefusals &&
           now - start >= std::chrono::duration<double>(Timeline::kPatienceSeconds);
  }
};

thread_local Poll poll;

void join(Timeline::Clock& clock, const Timeline::Clock& other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

}  // namespace

Timeline::Timeline(int device_count, bool is_ordered) : is_ordered_(is_ordered) {
  for (int device = 0; device < device_count; ++device) open(device, false);
}

int Timeline::open(int device, bool waits_for_default_stream) {
  const std::lock_guard lock(mutex_);
  auto free = std::find_if(sequences_.begin(), sequences_.end(), [&](const Sequence& sequence) {
    return !sequence.is_open && sequence.device == device;
  });
  if (free == sequences_.end()) free = sequences_.insert(free, {.device = device, .before = {}});
  free->is_open = true;
  free->waits_for_default_stream = waits_for_default_stream;
  const int sequence = static_cast<int>(free - sequences_.begin());
  if (waits_for_default_stream) waiting_.push_back(sequence);
  return sequence;
}

void Timeline::close(int sequence) {
  const std::lock_guard lock(mutex_);
  sequences_[sequence].is_open = false;
  std::erase(waiting_, sequence);
}

void Timeline::join_default_stream(int sequence) {
  const int device = sequences_[sequence].device;
  if (sequences_[sequence].waits_for_default_stream) {
    join(sequences_[sequence].before, sequences_[device].before);
  } else if (sequence == device) {
    for (const int other : waiting_) {
      if (sequences_[other].device != device) continue;
      join(sequences_[sequence].before, sequences_[other].before);
    }
  }
}

void Timeline::advance(int sequence) {
  join_default_stream(sequence);
  Clock& before = sequences_[sequence].before;
  if (before.size() <= static_cast<size_t>(sequence)) before.resize(sequence + 1);
  ++before[sequence];
}

void Timeline::add_work(int sequence) {
  if (!is_ordered_) return;
  poll.end();
  poll.gives_work = true;
  const std::lock_guard lock(mutex_);
  advance(sequence);
}

void Timeline::record(int sequence, Clock& event) {
  if (!is_ordered_) return;
  poll.end();
  const std::lock_guard lock(mutex_);
  advance(sequence);
  event = sequences_[sequence].before;
}

void Timeline::wait_for_event(int sequence, const Clock& event) {
  if (!is_ordered_) return;
  poll.end();
  const std::lock_guard lock(mutex_);
  join(sequences_[sequence].before, event);
}

bool Timeline::is_done_locked(const Clock& event) {
  bool is_done = true;
  for (size_t i = 0; is_done && i < event.size(); ++i) {
    is_done = event[i] <= (i < host_.size() ? host_[i] : 0);
  }
  if (is_done) {
    poll.end();
    return true;
  }
  if (!poll.is_over()) return false;
  if (poll.gives_work) join(host_, event);
  return true;
}

bool Timeline::is_done(const Clock& event) {
  if (!is_ordered_) return true;
  const std::lock_guard lock(mutex_);
  return is_done_locked(event);
}

bool Timeline::is_done(int sequence) {
  if (!is_ordered_) return true;
  const std::lock_guard lock(mutex_);
  join_default_stream(sequence);
  return is_done_locked(sequences_[sequence].before);
}

void Timeline::host_waits_for(const Clock& event) {
  if (!is_ordered_) return;
  poll.end();
  const std::lock_guard lock(mutex_);
  join(host_, event);
}

void Timeline::host_waits_for(int sequence) {
  if (!is_ordered_) return;
  poll.end();
  const std::lock_guard lock(mutex_);
  join_default_stream(sequence);
  join(host_, sequences_[sequence].before);
}

void Timeline::host_waits_for_device(int device) {
  if (!is_ordered_) return;
  poll.end();
  const std::lock_guard lock(mutex_);
  for (const Sequence& sequence : sequences_) {
    if (sequence.device == device) join(host_, sequence.before);
  }
}

}  // namespace virtual_gpu
