// Shows progress such as "running ranks: 7 of 16, about 12 s left" for work that takes longer than
// a second, or in a log, longer than ten.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace sim {

class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  struct Display {
    bool in_place = false;  ///< a terminal, on which the line is overwritten
    std::function<void(std::string_view)> write;
  };

  Progress(std::string what, int64_t total, Display display, Clock::time_point start);
  /// Erases the line on a terminal.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void count_one() { ++done_; }
  void set_total(int64_t total) { total_ = total; }
  /// That so much is left to be done, as far as is known.
  void expect_more(int64_t left) { total_ = done_ + left; }

  /// Shows the count if it has changed, but not in the first second, and then at most once in a
  /// second; where it is no terminal, in ten seconds.
  void update(Clock::time_point now);

 private:
  std::string text(Clock::time_point now) const;

  std::string what_;
  int64_t total_;
  Display display_;
  Clock::time_point start_;
  Clock::time_point last_shown_;
  int64_t done_ = 0;
  int64_t shown_done_ = -1;
};

/// Standard error, in place when it is a terminal.
Progress::Display standard_error_display();

}  // namespace sim
