#include "estimator/base/errors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstring>
#include <numeric>
#include <utility>

#include "estimator/base/field_words.h"
#include "estimator/base/text.h"

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

/// Without capitals and leading dashes.
std::string letters_of(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  return lower_case(name);
}

/// More edits than these make another word of it.
int most_edits(std::size_t letters) { return letters <= 4 ? 1 : letters <= 8 ? 2 : 3; }

/// Whether `word` stands in `text` with no letter or digit beside it.
bool contains_word(const std::string& text, const std::string& word) {
  const auto is_inside = [&](std::size_t at) {
    return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
  };
  const std::size_t at = text.find(word);
  return at != std::string::npos && (at == 0 || !is_inside(at - 1)) && !is_inside(at + word.size());
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

UserError killed_error(std::string_view who,
                       int signal_number,
                       std::string where,
                       std::string help) {
  return UserError(
      {.what = fmt::format(
           "{} was killed by signal {} ({})", who, signal_number, strsignal(signal_number)),
       .where = std::move(where),
       .help = std::move(help)},
      ExitCode::kMachineLacks);
}

std::string help_for_killed(int signal_number,
                            std::string_view uses_less,
                            std::string_view otherwise) {
  if (signal_number != SIGKILL) return std::string(otherwise);
  return fmt::format(
      "probably this machine ran out of memory{}{}", uses_less.empty() ? "" : ": ", uses_less);
}

std::string to_text(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    text += "error: " + shortened(problem.what) + "\n";
    if (!problem.where.empty()) text += "  " + shortened(problem.where) + "\n";
    if (!problem.help.empty()) text += "  help: " + shortened(problem.help) + "\n";
  }
  return printable(text);
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  constexpr std::size_t kFewestLetters = 3;  // of a part that tells anything
  constexpr std::size_t kFewestOfBeginning = 6;
  const std::string wanted = letters_of(name);
  if (wanted.empty()) return "";
  std::string nearest, beginning, containing, contained;
  int nearest_distance = most_edits(wanted.size()) + 1;
  for (const std::string& candidate : known) {
    const std::string letters = letters_of(candidate);
    const int distance = edit_distance(wanted, letters);
    if (distance < nearest_distance) {
      nearest_distance = distance;
      nearest = candidate;
    }
    if (beginning.empty() && wanted.size() >= kFewestOfBeginning && letters.starts_with(wanted)) {
      beginning = candidate;
    }
    if (containing.empty() && wanted.size() >= kFewestLetters &&
        letters.find(wanted) != std::string::npos) {
      containing = candidate;
    }
    if (letters.size() >= std::max(kFewestLetters, letters_of(contained).size() + 1) &&
        contains_word(wanted, letters)) {
      contained = candidate;
    }
  }
  if (!beginning.empty() && nearest_distance > 1) return beginning;
  if (!nearest.empty()) return nearest;
  return containing.empty() ? contained : containing;
}

std::string suggestion(std::string_view name,
                       const std::vector<std::string>& known,
                       std::string_view otherwise) {
  if (const FieldWord* word = find_field_word(name)) {
    return fmt::format("{}: {}", word->what, word->instead);
  }
  const std::string nearest = nearest_name(name, known);
  if (!nearest.empty()) return fmt::format("did you mean {}?", nearest);
  if (!otherwise.empty()) return std::string(otherwise);
  return fmt::format("known are {}", fmt::join(known, ", "));
}

}  // namespace estimator
