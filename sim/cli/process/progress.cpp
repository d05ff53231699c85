#include "sim/cli/process/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>

namespace sim {

Progress::Progress(std::string what, int64_t total, Display display, Clock::time_point start)
    : what_(std::move(what)),
      total_(total),
      display_(std::move(display)),
      start_(start),
      last_shown_(start) {}

Progress::~Progress() {
  const bool shown = shown_done_ >= 0;
  if (shown && display_.in_place) display_.write("\r\x1b[K");
}

void Progress::update(Clock::time_point now) {
  const std::chrono::seconds pause(display_.in_place ? 1 : 10);
  if (now - last_shown_ < pause || done_ == shown_done_) return;
  last_shown_ = now;
  shown_done_ = done_;
  display_.write(display_.in_place ? "\r\x1b[K" + text(now) : text(now) + "\n");
}

std::string Progress::text(Clock::time_point now) const {
  std::string count = fmt::format("{}: {} of {}", what_, done_, total_);
  if (done_ == 0 || done_ >= total_) return count;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double left = elapsed / static_cast<double>(done_) * static_cast<double>(total_ - done_);
  return fmt::format("{}, about {:.0f} s left", count, std::ceil(left));
}

Progress::Display standard_error_display() {
  const auto write_all = [](std::string_view text) {
    // A reader of progress that has gone is no error.
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  };
  return {.in_place = isatty(STDERR_FILENO) == 1, .write = write_all};
}

}  // namespace sim
