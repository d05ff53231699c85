#include "estimator/base/glob.h"

#include <algorithm>
#include <cstddef>

namespace estimator {
namespace {

/// Whether the letter is in the set "[a-z_]" or, with ! or ^, not in it; the set's brackets are
/// left out.
bool is_in_set(char letter, std::string_view set) {
  const bool negated = set.starts_with('!') || set.starts_with('^');
  if (negated) set.remove_prefix(1);
  bool found = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const bool is_range = i + 2 < set.size() && set[i + 1] == '-';
    const char last = is_range ? set[i + 2] : set[i];
    found = found || (set[i] <= letter && letter <= last);
    if (is_range) i += 2;
  }
  return found != negated;
}

/// The place after the element of the pattern at `p`, if it matches the letter; `p` if not. A [
/// without a ] stands for itself, and so does a ] that comes first in a set.
std::size_t after_element(std::string_view pattern, std::size_t p, char letter) {
  if (p >= pattern.size()) return p;
  if (pattern[p] == '[') {
    const std::size_t first = p + 1 + (pattern.substr(p + 1).find_first_not_of("!^") == 1 ? 1 : 0);
    const std::size_t end = pattern.find(']', first + 1);
    if (end != pattern.npos) {
      return is_in_set(letter, pattern.substr(p + 1, end - p - 1)) ? end + 1 : p;
    }
  }
  return pattern[p] == '?' || pattern[p] == letter ? p + 1 : p;
}

}  // namespace

bool matches_glob(std::string_view text, std::string_view pattern) {
  std::size_t t = 0;
  std::size_t p = 0;
  std::size_t star = std::string_view::npos;
  std::size_t restart = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      restart = t;
    } else if (const std::size_t next = after_element(pattern, p, text[t]); next > p) {
      p = next;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++restart;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool matches_any_glob(std::string_view text, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return matches_glob(text, pattern);
  });
}

}  // namespace estimator
