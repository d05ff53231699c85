#include "estimator/base/errors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace estimator {
namespace {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

/// What is longer than kLongestShown loses its middle.
std::string shortened(const std::string& text) {
  if (text.size() <= kLongestShown) return text;
  return fmt::format("{} ... ({} bytes) ... {}",
                     text.substr(0, kLongestShown / 2),
                     text.size(),
                     text.substr(text.size() - kLongestShown / 4));
}

}  // namespace

UserError::UserError(Problem problem, ExitCode exit_code)
    : UserError(std::vector<Problem>{std::move(problem)}, exit_code) {}

UserError::UserError(std::vector<Problem> problems, ExitCode exit_code)
    : std::runtime_error(to_text(and_more(problems))),
      problems_(and_more(std::move(problems))),
      exit_code_(exit_code) {}

std::vector<Problem> and_more(std::vector<Problem> problems, int64_t left_out) {
  if (problems.size() > kMostProblemsShown + 1) {  // one more costs no more than telling of it
    left_out += static_cast<int64_t>(problems.size() - kMostProblemsShown);
    problems.resize(kMostProblemsShown);
  }
  if (left_out > 0) {
    problems.push_back({.what = fmt::format("and {} problems more", left_out),
                        .where = "",
                        .help = "mend these first"});
  }
  return problems;
}

std::string to_text(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    text += "error: " + shortened(problem.what) + "\n";
    if (!problem.where.empty()) text += "  " + shortened(problem.where) + "\n";
    if (!problem.help.empty()) text += "  help: " + shortened(problem.help) + "\n";
  }
  return text;
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  constexpr int kFarthest = 3;
  std::string nearest;
  int nearest_distance = kFarthest + 1;
  for (const std::string& candidate : known) {
    const int distance = edit_distance(name, candidate);
    if (distance < nearest_distance) {
      nearest_distance = distance;
      nearest = candidate;
    }
  }
  if (!nearest.empty()) return nearest;
  // "70b" or "h100" name a family: offer the first member that contains the word.
  const auto containing = std::find_if(known.begin(), known.end(), [&](const std::string& other) {
    return name.size() >= 3 && other.find(name) != std::string::npos;
  });
  return containing == known.end() ? std::string() : *containing;
}

std::string suggestion(std::string_view name, const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(name, known);
  if (!nearest.empty()) return fmt::format("did you mean {}?", nearest);
  return fmt::format("known are {}", fmt::join(known, ", "));
}

}  // namespace estimator
