// The two documents of nccl-tests (@a0b82b2): the text of its standard output, and the JSON of -J.

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/base/number_text.h"
#include "estimator/communication/measured_collectives.h"

namespace estimator {
namespace {

constexpr double kMicrosecond = 1e-6;

/// No collective ends within a nanosecond, and nobody waits three hours for one.
constexpr Range kMeasuredMicroseconds = {1e-3, 1e10};

/// The programs of nccl-tests, which may carry a suffix: all_reduce_perf_mpi.
struct Program {
  const char* name;
  CollectiveKind kind;
};
constexpr Program kPrograms[] = {{"all_reduce_perf", CollectiveKind::kAllReduce},
                                 {"all_gather_perf", CollectiveKind::kAllGather},
                                 {"reduce_scatter_perf", CollectiveKind::kReduceScatter},
                                 {"alltoall_perf", CollectiveKind::kAllToAll},
                                 {"broadcast_perf", CollectiveKind::kBroadcast},
                                 {"reduce_perf", CollectiveKind::kReduce},
                                 {"gather_perf", CollectiveKind::kGather},
                                 {"scatter_perf", CollectiveKind::kScatter},
                                 {"sendrecv_perf", CollectiveKind::kSend}};

[[noreturn]] void refuse(const std::string& origin, std::string what, std::string help) {
  throw UserError({.what = std::move(what), .where = origin, .help = std::move(help)});
}

CollectiveKind kind_of(const std::string& program, const std::string& origin) {
  const std::string name = program.substr(program.rfind('/') + 1);
  for (const Program& known : kPrograms) {
    if (name.rfind(known.name, 0) == 0) return known.kind;
  }
  refuse(origin, fmt::format("unknown program of nccl-tests: {}", program), "use all_reduce_perf");
}

/// Puts a document together and checks what both forms share.
class Collector {
 public:
  Collector(const std::string& origin, std::optional<CollectiveKind> untold)
      : has_program_(untold.has_value()) {
    result_.origin = origin;
    result_.kind = untold.value_or(CollectiveKind::kAllReduce);
  }

  void program(const std::string& name, const std::string& where) {
    result_.kind = kind_of(name, where);
    has_program_ = true;
  }
  void device(const std::string& host, const std::string& name, const std::string& where) {
    if (result_.ranks++ > 0 && name != result_.device) {
      refuse(where,
             fmt::format("two kinds of GPUs: {} and {}", result_.device, name),
             "give a run on equal machines");
    }
    result_.device = name;
    hosts_.insert(host);
  }
  void point(int64_t bytes, double microseconds, double wrong, const std::string& where) {
    if (wrong != 0) {
      refuse(where, "the test found wrong results", "measure again: such a time means nothing");
    }
    if (bytes == 0) return;
    if (!kMeasuredMicroseconds.holds(microseconds) || !kBytes.holds(static_cast<double>(bytes))) {
      refuse(where,
             fmt::format("no measurement gives {} bytes in {} us", bytes, microseconds),
             "give a whole file");
    }
    result_.points.push_back({bytes, microseconds * kMicrosecond});
  }
  MeasuredCollective finish() {
    const std::string& origin = result_.origin;
    constexpr const char* kHelp = "give all that nccl-tests printed, from its first line";
    if (!has_program_) refuse(origin, "no line says which collective was tested", kHelp);
    if (result_.ranks < 2) refuse(origin, "no lines say which ranks took part", kHelp);
    if (result_.points.empty()) refuse(origin, "no line has a result", kHelp);
    result_.machines = static_cast<int64_t>(hosts_.size());
    std::stable_sort(result_.points.begin(),
                     result_.points.end(),
                     [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    const auto repeated = std::adjacent_find(
        result_.points.begin(), result_.points.end(), [](const auto& a, const auto& b) {
          return a.bytes == b.bytes;
        });
    if (repeated != result_.points.end()) {
      refuse(origin, fmt::format("{} bytes stand twice", repeated->bytes), "give one run");
    }
    return std::move(result_);
  }

 private:
  MeasuredCollective result_;
  std::set<std::string> hosts_;
  bool has_program_;
};

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

template <class Number>
Number number(const std::string& word, const std::string& where) {
  const auto value = parse_number<Number>(word);
  if (!value) {
    refuse(where, fmt::format("a number is needed, not \"{}\"", word), "give a whole file");
  }
  return *value;
}

/// "#  Rank  0 Group  0 Pid 1 on host device  0 [0000:0f:00] NVIDIA H100 80GB HBM3"; older files
/// have no group.
void read_rank_line(const std::string& line, const std::string& where, Collector& collector) {
  const std::vector<std::string> words = words_of(line);
  const auto on = std::find(words.begin(), words.end(), "on");
  const std::size_t bracket = line.find(']');
  if (on == words.end() || on + 1 == words.end() || bracket == std::string::npos) {
    refuse(where, "a rank's line is cut off", "give a whole file");
  }
  std::string name = line.substr(bracket + 1);
  name.erase(0, name.find_first_not_of(' '));
  name.erase(name.find_last_not_of(" \r") + 1);
  collector.device(*(on + 1), name, where);
}

/// size, count, type, redop, root, then time, algbw, busbw, #wrong out of place and in place.
void read_result_line(const std::string& line, const std::string& where, Collector& collector) {
  constexpr std::size_t kSize = 0, kTime = 5, kWrong = 8;
  const std::vector<std::string> words = words_of(line);
  if (words.size() <= kWrong) {
    refuse(where,
           fmt::format("a result has {} columns, needs at least {}", words.size(), kWrong + 1),
           "give a whole file");
  }
  const double wrong = words[kWrong] == "N/A" ? 0 : number<double>(words[kWrong], where);
  collector.point(
      number<int64_t>(words[kSize], where), number<double>(words[kTime], where), wrong, where);
}

MeasuredCollective read_text(const std::string& text,
                             const std::string& origin,
                             std::optional<CollectiveKind> untold) {
  constexpr std::string_view kProgram = "# Collective test starting: ";
  Collector collector(origin, untold);
  std::istringstream lines(text);
  int64_t number_of_line = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = fmt::format("{}, line {}", origin, ++number_of_line);
    const std::vector<std::string> words = words_of(line);
    if (line.rfind(kProgram, 0) == 0) {
      collector.program(words.back(), where);
    } else if (words.size() > 2 && words[0] == "#" && words[1] == "Rank") {
      read_rank_line(line, where, collector);
    } else if (!words.empty() && std::isdigit(static_cast<unsigned char>(words[0][0])) != 0) {
      read_result_line(line, where, collector);
    }
  }
  return collector.finish();
}

/// The value at a key that must be there.
const Json& at(const Json& object, const char* key, const std::string& where) {
  if (!object.is_object() || !object.contains(key)) {
    refuse(where, fmt::format("\"{}\" is missing", key), "give what nccl-tests -J wrote");
  }
  return object[key];
}

template <class Value>
Value value_at(const Json& object, const char* key, const std::string& where) {
  FieldReader reader(where);
  Value value{};
  reader.read(at(object, key, where), value, key);
  reader.throw_if_any();
  return value;
}

MeasuredCollective read_json(const std::string& text,
                             const std::string& origin,
                             std::optional<CollectiveKind> untold) {
  const Json document = parse_json(text, origin);
  Collector collector(origin, untold);
  const auto arguments = value_at<std::vector<std::string>>(document, "args", origin);
  if (!arguments.empty()) collector.program(arguments.front(), origin + ": args");
  for (const Json& device : at(at(document, "config", origin), "devices", origin)) {
    const std::string where = origin + ": config.devices";
    collector.device(value_at<std::string>(device, "hostname", where),
                     value_at<std::string>(device, "device_info", where),
                     where);
  }
  std::size_t index = 0;
  for (const Json& result : at(document, "results", origin)) {
    const std::string where = fmt::format("{}: results[{}]", origin, index++);
    const Json& time = at(result, "out_of_place", where);
    const Json& wrong = at(time, "nwrong", where);
    collector.point(value_at<int64_t>(result, "size", where),
                    value_at<double>(time, "time", where),
                    wrong.is_number() ? wrong.get<double>() : 0,
                    where);
  }
  return collector.finish();
}

}  // namespace

MeasuredCollective read_nccl_tests(const std::string& text,
                                   const std::string& origin,
                                   std::optional<CollectiveKind> untold) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{' ? read_json(text, origin, untold)
                                                          : read_text(text, origin, untold);
}

}  // namespace estimator
