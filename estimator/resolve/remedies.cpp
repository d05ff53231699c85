#include "estimator/resolve/remedies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/resolve/plan_tree.h"

namespace estimator {
namespace {

constexpr std::size_t kMostTried = 100;
constexpr std::size_t kMostOffered = 3;

enum class Outcome { kGood, kOthersStayBroken, kBad };

class Trials {
 public:
  Trials(const std::vector<BrokenRule>& broken,
         const Json& tree,
         const std::function<std::vector<BrokenRule>(const Json&)>& broken_by)
      : broken_(broken), tree_(tree), broken_by_(broken_by) {}

  /// The help of a rule.
  std::string help(const BrokenRule& rule) const {
    for (const Outcome wanted : {Outcome::kGood, Outcome::kOthersStayBroken}) {
      std::vector<std::string> offers;
      for (const Remedy& remedy : rule.remedies) {
        const std::vector<int64_t> values = values_with(wanted, remedy, rule);
        if (values.empty()) continue;
        offers.push_back(fmt::format(fmt::runtime(remedy.text), fmt::join(values, ", ")));
      }
      if (!offers.empty()) return fmt::format("use {}", fmt::join(offers, ", or "));
    }
    return rule.problem.help;
  }

 private:
  /// Ascending.
  std::vector<int64_t> values_with(Outcome wanted,
                                   const Remedy& remedy,
                                   const BrokenRule& rule) const {
    std::vector<int64_t> values;
    for (std::size_t i = 0; i < std::min(remedy.values.size(), kMostTried); ++i) {
      if (values.size() == kMostOffered) break;
      if (outcome(remedy, remedy.values[i], rule) == wanted) values.push_back(remedy.values[i]);
    }
    std::sort(values.begin(), values.end());
    return values;
  }

  Outcome outcome(const Remedy& remedy, int64_t value, const BrokenRule& rule) const {
    Json changed = tree_;
    try {
      set_in_tree(changed, remedy.path, value, remedy.path);
      const std::vector<BrokenRule> left = broken_by_(changed);
      if (left.empty()) return Outcome::kGood;
      const bool nothing_new = std::all_of(left.begin(), left.end(), [&](const auto& other) {
        return other.problem.what != rule.problem.what && was_broken(other);
      });
      return nothing_new ? Outcome::kOthersStayBroken : Outcome::kBad;
    } catch (const UserError&) {
      return Outcome::kBad;
    }
  }

  bool was_broken(const BrokenRule& rule) const {
    return std::any_of(broken_.begin(), broken_.end(), [&](const BrokenRule& before) {
      return before.problem.what == rule.problem.what;
    });
  }

  const std::vector<BrokenRule>& broken_;
  const Json& tree_;
  const std::function<std::vector<BrokenRule>(const Json&)>& broken_by_;
};

}  // namespace

std::vector<Problem> offer_remedies(
    const std::vector<BrokenRule>& broken,
    const Json& tree,
    const std::function<std::vector<BrokenRule>(const Json& tree)>& broken_by) {
  const Trials trials(broken, tree, broken_by);
  std::vector<Problem> problems;
  for (const BrokenRule& rule : broken) {
    problems.push_back(rule.problem);
    problems.back().help = trials.help(rule);
  }
  return problems;
}

std::vector<int64_t> divisors_near(int64_t value, int64_t wanted) {
  std::vector<int64_t> divisors, others;
  for (int64_t d = 1; d <= 100'000 && d * d <= value; ++d) {
    if (value % d != 0) continue;
    divisors.push_back(d);
    if (d * d != value) others.push_back(value / d);
  }
  divisors.insert(divisors.end(), others.rbegin(), others.rend());
  std::stable_sort(divisors.begin(), divisors.end(), [&](int64_t a, int64_t b) {
    return std::abs(a - wanted) < std::abs(b - wanted);
  });
  return divisors;
}

}  // namespace estimator
