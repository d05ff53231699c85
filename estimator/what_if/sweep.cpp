#include "estimator/what_if/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "estimator/what_if/combinations.h"
#include "estimator/what_if/scaling.h"

namespace estimator {
namespace {

/// The points along one axis that have results, by ascending value.
struct SweepLine {
  std::string others;
  std::vector<double> x;
  std::vector<std::string> values;
  std::vector<const SweepResult*> results;
};

/// "--tp 2 --pp 4", the values of all axes but these.
std::string others_of(const Sweep& sweep,
                      const SweepPoint& point,
                      const std::set<std::size_t>& left_out) {
  std::string text;
  for (std::size_t a = 0; a < sweep.axes.size(); ++a) {
    if (left_out.contains(a)) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : " ", sweep.axes[a].flag, point.values[a]);
  }
  return text;
}

std::vector<SweepLine> lines_along(const Sweep& sweep, std::size_t axis) {
  const SweepAxis& along = sweep.axes[axis];
  std::vector<std::size_t> ascending(along.values.size());
  for (std::size_t i = 0; i < ascending.size(); ++i) ascending[i] = i;
  std::sort(ascending.begin(), ascending.end(), [&](auto a, auto b) {
    return along.numbers[a] < along.numbers[b];
  });
  std::vector<SweepLine> lines;
  std::map<std::string, std::size_t> line_of;
  for (const std::size_t value : ascending) {
    for (const SweepPoint& point : sweep.points) {
      if (point.values[axis] != along.values[value] || !point.result) continue;
      const std::string others = others_of(sweep, point, {axis});
      const auto [found, is_new] = line_of.try_emplace(others, lines.size());
      if (is_new) lines.push_back({.others = others});
      SweepLine& line = lines[found->second];
      line.x.push_back(along.numbers[value]);
      line.values.push_back(along.values[value]);
      line.results.push_back(&*point.result);
    }
  }
  std::erase_if(lines, [](const SweepLine& line) { return line.x.size() < 2; });
  return lines;
}

std::vector<double> of_results(const SweepLine& line, double (*quantity)(const SweepResult&)) {
  std::vector<double> y;
  for (const SweepResult* result : line.results) y.push_back(quantity(*result));
  return y;
}

double peak_of(const SweepResult& result) { return static_cast<double>(result.peak_bytes); }
double seconds_of(const SweepResult& result) { return result.iteration_seconds; }

SweepScaling scaling_along(const std::string& flag,
                           const SweepLine& line,
                           const char* quantity,
                           const std::vector<double>& y,
                           const std::optional<PowerLaw>& law) {
  SweepScaling scaling{.flag = flag,
                       .others = line.others,
                       .quantity = quantity,
                       .words = scaling_words(line.x, y, law)};
  if (!law || line.x.size() == 2) return scaling;
  scaling.exponent = law->exponent;
  scaling.offset = law->offset;
  scaling.factor = law->factor;
  return scaling;
}

/// Where the verdict changes first; empty if it nowhere does.
std::optional<SweepLimit> limit_of(const std::string& flag,
                                   const SweepLine& line,
                                   const std::optional<PowerLaw>& law) {
  const auto fits = [&](std::size_t i) { return line.results[i]->outcome == Fit::kFits; };
  for (std::size_t i = 1; i < line.results.size(); ++i) {
    if (fits(i - 1) == fits(i)) continue;
    const std::size_t good = fits(i) ? i : i - 1, bad = fits(i) ? i - 1 : i;
    SweepLimit limit{.flag = flag,
                     .others = line.others,
                     .last_that_fits = line.values[good],
                     .first_that_does_not = line.values[bad],
                     .outcome = line.results[bad]->outcome};
    const auto [low, high] = std::minmax(line.x[good], line.x[bad]);
    if (law) {
      limit.estimated = law->reaches(static_cast<double>(line.results[good]->limit_bytes));
    }
    if (limit.estimated && !(low <= *limit.estimated && *limit.estimated <= high)) {
      limit.estimated.reset();
    }
    return limit;
  }
  return std::nullopt;
}

bool changes_gpus(const SweepLine& line) {
  return std::any_of(line.results.begin(), line.results.end(), [&](const SweepResult* result) {
    return result->gpus != line.results.front()->gpus;
  });
}

std::set<std::size_t> axes_of_gpus(const Sweep& sweep) {
  std::set<std::size_t> axes;
  for (std::size_t a = 0; a < sweep.axes.size(); ++a) {
    if (sweep.axes[a].numbers.empty()) continue;
    const std::vector<SweepLine> lines = lines_along(sweep, a);
    if (std::any_of(lines.begin(), lines.end(), changes_gpus)) axes.insert(a);
  }
  return axes;
}

double tokens_per_second_of_a_gpu(const SweepResult& result) {
  return result.tokens_per_second / static_cast<double>(result.gpus);
}

bool is_before(const SweepResult& a, const SweepResult& b) {
  return a.gpus != b.gpus ? a.gpus < b.gpus : a.tokens_per_second > b.tokens_per_second;
}

void add_efficiency(Sweep& sweep) {
  const std::set<std::size_t> axes = axes_of_gpus(sweep);
  if (axes.empty()) return;
  std::map<std::string, SweepResult> fewest;  // by the values of the other axes
  for (const SweepPoint& point : sweep.points) {
    if (!point.result) continue;
    const auto [found, is_new] = fewest.try_emplace(others_of(sweep, point, axes), *point.result);
    if (!is_new && is_before(*point.result, found->second)) found->second = *point.result;
  }
  for (SweepPoint& point : sweep.points) {
    if (!point.result) continue;
    point.result->scaling_efficiency =
        tokens_per_second_of_a_gpu(*point.result) /
        tokens_per_second_of_a_gpu(fewest.at(others_of(sweep, point, axes)));
  }
}

}  // namespace

SweepResult sweep_result(const Plan& plan, const ClusterEstimate& estimate) {
  const Verdict& verdict = estimate.verdict;
  const int64_t tokens =
      plan.training.micro_batch_size * plan.sequence_length() / plan.parallelism.context;
  return {.outcome = verdict.outcome,
          .worst_rank = verdict.worst_rank,
          .peak_bytes = verdict.peak_bytes,
          .headroom_bytes = verdict.headroom_bytes,
          .limit_bytes = verdict.capacity_bytes - plan.memory.headroom_bytes,
          .gpus = plan.world_size(),
          .framework = to_string(plan.training.framework),
          .iteration_seconds = estimate.time.iteration_seconds,
          .tokens_per_second = estimate.throughput.tokens_per_second,
          .samples_per_second =
              static_cast<double>(plan.global_batch_size()) / estimate.time.iteration_seconds,
          .mfu = estimate.throughput.mfu,
          .bytes_per_token = static_cast<double>(verdict.peak_bytes) / static_cast<double>(tokens)};
}

std::vector<std::vector<std::string>> combinations(const std::vector<SweepAxis>& axes) {
  std::vector<std::vector<std::string>> values;
  values.reserve(axes.size());
  for (const SweepAxis& axis : axes) values.push_back(axis.values);
  return combinations(values);
}

void add_scaling(Sweep& sweep) {
  add_efficiency(sweep);
  for (std::size_t a = 0; a < sweep.axes.size(); ++a) {
    const SweepAxis& axis = sweep.axes[a];
    if (axis.numbers.empty()) continue;
    for (const SweepLine& line : lines_along(sweep, a)) {
      const std::vector<double> peaks = of_results(line, peak_of);
      const std::vector<double> seconds = of_results(line, seconds_of);
      const auto law = fit_power_law(line.x, peaks);
      sweep.scaling.push_back(scaling_along(axis.flag, line, "peak_bytes", peaks, law));
      sweep.scaling.push_back(scaling_along(
          axis.flag, line, "iteration_seconds", seconds, fit_power_law(line.x, seconds)));
      if (auto limit = limit_of(axis.flag, line, law)) sweep.limits.push_back(std::move(*limit));
    }
  }
}

}  // namespace estimator
