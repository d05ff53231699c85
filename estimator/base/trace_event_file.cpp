#include "estimator/base/trace_event_file.h"

#include <fmt/format.h>

#include <cmath>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"

namespace estimator {
namespace {

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

int64_t trace_nanoseconds(double seconds) {
  constexpr double kLongest = 9e9;  // nearly 2^63 ns
  if (std::abs(seconds) > kLongest) {
    throw UserError({.what = "the iteration is too long for a trace",
                     .where = fmt::format("{} s, against {} s at most", seconds, kLongest),
                     .help = "ask for the estimate without a trace, and see why it is so long"});
  }
  return std::llround(seconds * 1e9);
}

/// Perfetto multiplies by 1,000 and cuts off the rest (src/trace_processor/importers/json/
/// json_utils.cc, CoerceToTs): where the product falls short of the whole number, a further digit
/// keeps it.
std::string trace_microseconds(int64_t nanoseconds) {
  constexpr int64_t kThousand = 1000;
  const double as_read = static_cast<double>(nanoseconds) / kThousand;
  const bool falls_short = static_cast<int64_t>(as_read * kThousand) < nanoseconds;
  return fmt::format(
      "{}.{:03}{}", nanoseconds / kThousand, nanoseconds % kThousand, falls_short ? "1" : "");
}

std::back_insert_iterator<std::string> TraceEventFile::next() {
  text_ += is_first_ ? "\n" : ",\n";
  is_first_ = false;
  return std::back_inserter(text_);
}

void TraceEventFile::name_process(int64_t process, const std::string& name) {
  fmt::format_to(next(),
                 R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":{}}}}})",
                 process,
                 quoted(name));
  fmt::format_to(next(),
                 R"({{"ph":"M","name":"process_sort_index","pid":{},"tid":0,)"
                 R"("args":{{"sort_index":{}}}}})",
                 process,
                 process);
}

void TraceEventFile::name_thread(int64_t process, int64_t thread, const std::string& name) {
  fmt::format_to(next(),
                 R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})",
                 process,
                 thread,
                 quoted(name));
}

void TraceEventFile::add(const TraceSlice& slice,
                         const std::string& name,
                         const std::string& category,
                         const std::string& arguments) {
  fmt::format_to(next(),
                 R"({{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{},"dur":{},)"
                 R"("args":{{{}}}}})",
                 quoted(name),
                 quoted(category),
                 slice.process,
                 slice.thread,
                 trace_microseconds(slice.begin),
                 trace_microseconds(slice.end - slice.begin),
                 arguments);
}

void TraceEventFile::add_counter(int64_t process,
                                 int64_t at,
                                 const std::string& name,
                                 double value) {
  fmt::format_to(next(),
                 R"({{"ph":"C","name":{},"pid":{},"tid":0,"ts":{},"args":{{"value":{:.3f}}}}})",
                 quoted(name),
                 process,
                 trace_microseconds(at),
                 value);
}

void TraceEventFile::add_arrow(const TraceSlice& from,
                               const TraceSlice& to,
                               const std::string& name) {
  const auto end = [&](const char* phase, const TraceSlice& at) {
    fmt::format_to(next(),
                   R"({{{},"name":{},"cat":{},"id":{},"pid":{},"tid":{},"ts":{}}})",
                   phase,
                   quoted(name),
                   quoted(name),
                   arrows_,
                   at.process,
                   at.thread,
                   trace_microseconds(at.begin));
  };
  end(R"("ph":"s")", from);
  end(R"("ph":"f","bp":"e")", to);  // "e": the slice that is open then, not the next to begin
  ++arrows_;
}

std::string TraceEventFile::finish(const std::string& about) && {
  text_ += fmt::format("\n],\"displayTimeUnit\":\"ms\",\"otherData\":{}}}\n", about);
  return std::move(text_);
}

}  // namespace estimator
