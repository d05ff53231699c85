#include "sim/exec/messages/absent_answers.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <tuple>

#include "estimator/profile/collective_call.h"
#include "sim/exec/messages/collective_log.h"
#include "sim/exec/program/python.h"
#include "sim/exec/program/settings.h"

namespace sim {
namespace {

using estimator::CollectiveKind;

/// Kind, group, members, line of Python, why.
using AnswerKey = std::tuple<std::string, std::string, int64_t, std::string, std::string>;

struct NotedAnswers {
  std::mutex mutex;
  std::map<AnswerKey, int64_t> counts;
};
NotedAnswers& noted() {
  static auto* const answers = new NotedAnswers;  // threads may outlive main()
  return *answers;
}

void tell_in_folder(const AbsentAnswer& answer, const std::string& line) {
  const char* folder = std::getenv(kExecFolderVariable);
  if (folder == nullptr) return;
  const char* file =
      answer.kind == to_string(CollectiveKind::kBarrier) ? kPassedBarriers : kTakenForOwn;
  std::ofstream(std::filesystem::path(folder) / file, std::ios::app)
      << fmt::format("{} over group {} of {} ranks{}{}: {}\n",
                     answer.kind,
                     answer.group,
                     answer.members,
                     line.empty() ? "" : ", ",
                     line,
                     answer.why);
}

}  // namespace

std::string why_not_run(int64_t absent, int64_t members) {
  return fmt::format("{} of {} ranks were not run", absent, members);
}

void note_absent_answer(const AbsentAnswer& answer) {
  constexpr size_t kMostTold = 16;
  const std::string line = python_line().text;  // before the mutex: it waits for the interpreter
  const std::lock_guard lock(noted().mutex);
  auto& counts = noted().counts;
  const int64_t times = ++counts[{answer.kind, answer.group, answer.members, line, answer.why}];
  const bool is_told = times == 1 && counts.size() <= kMostTold && !is_reduction(answer.kind);
  if (is_told) tell_in_folder(answer, line);
}

std::vector<estimator::AbsentAnswerRecord> absent_answers() {
  std::vector<estimator::AbsentAnswerRecord> records;
  const std::lock_guard lock(noted().mutex);
  for (const auto& [key, count] : noted().counts) {
    const auto& [kind, group, members, line, why] = key;
    records.push_back({kind, group, members, line, why, count});
  }
  return records;
}

}  // namespace sim
