// Writes the format that Perfetto (https://ui.perfetto.dev) and chrome://tracing open: "Trace Event
// Format", Google, docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>

namespace estimator {

/// Begin and end of a slice are rounded, not begin and length: then what begins when another ends
/// does so in the file. Throws UserError for times that the format cannot hold.
int64_t trace_nanoseconds(double seconds);

/// The format's unit, to the nanosecond, as Perfetto reads it.
std::string trace_microseconds(int64_t nanoseconds);

struct TraceSlice {
  int64_t process = 0;
  int64_t thread = 0;
  int64_t begin = 0;  ///< nanoseconds
  int64_t end = 0;
};

/// Each event stands on a line of its own.
class TraceEventFile {
 public:
  /// Processes are shown in the order of their numbers.
  void name_process(int64_t process, const std::string& name);
  void name_thread(int64_t process, int64_t thread, const std::string& name);

  /// `arguments` are members of a JSON object, without its braces.
  void add(const TraceSlice& slice,
           const std::string& name,
           const std::string& category,
           const std::string& arguments);

  /// A counter of the process, which is drawn as an area: its value from a moment on.
  void add_counter(int64_t process, int64_t at, const std::string& name, double value);

  /// Bytes so far.
  std::size_t size() const { return text_.size(); }

  /// An arrow from the begin of a slice to a moment in the slice that is open then.
  void add_arrow(const TraceSlice& from, const TraceSlice& to, const std::string& name);

  /// The whole file. `about` is a JSON value that is kept beside the events.
  std::string finish(const std::string& about) &&;

 private:
  std::back_insert_iterator<std::string> next();

  std::string text_ = "{\"traceEvents\":[";
  bool is_first_ = true;
  int64_t arrows_ = 0;
};

}  // namespace estimator
