#include "sim/cli/process/progress.h"

#include <fmt/format.h>
#include <unistd.h>

namespace sim {

Progress::Progress(std::string what, int64_t total, Display display, Clock::time_point start)
    : what_(std::move(what)), total_(total), display_(std::move(display)), last_shown_(start) {}

Progress::~Progress() {
  const bool shown = shown_done_ >= 0;
  if (shown && display_.in_place) display_.write("\r\x1b[K");
}

void Progress::update(Clock::time_point now) {
  if (now - last_shown_ < std::chrono::seconds(1) || done_ == shown_done_) return;
  last_shown_ = now;
  shown_done_ = done_;
  const std::string text = fmt::format("{}: {} of {}", what_, done_, total_);
  display_.write(display_.in_place ? "\r\x1b[K" + text : text + "\n");
}

Progress::Display standard_error_display() {
  const auto write_all = [](std::string_view text) {
    // A reader of progress that has gone is no error.
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  };
  return {.in_place = isatty(STDERR_FILENO) == 1, .write = write_all};
}

}  // namespace sim
