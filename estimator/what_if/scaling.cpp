#include "estimator/what_if/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace estimator {
namespace {

constexpr double kLeastExponent = -3, kMostExponent = 4;
constexpr double kSmallestChange = 0.02;  ///< of the largest value
constexpr double kNearWhole = 0.15;       ///< an exponent so near to a whole one is called by it
constexpr double kAsGood = 0.02;          ///< of the range of y: so far a whole exponent may be off

/// (x^p - 1) / p, which is ln x at p = 0 and grows with x at any p (Box and Cox 1964).
double stretched(double x, double p) {
  return std::abs(p) < 1e-9 ? std::log(x) : (std::pow(x, p) - 1) / p;
}

struct Line {
  double offset = 0, slope = 0, squares = 0;
};

/// The line of least squares through (stretched(x), y).
Line fit_line(const std::vector<double>& x, const std::vector<double>& y, double p) {
  const auto n = static_cast<double>(x.size());
  double sum_u = 0, sum_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum_u += stretched(x[i], p);
    sum_y += y[i];
  }
  double uu = 0, uy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double u = stretched(x[i], p) - sum_u / n;
    uu += u * u;
    uy += u * (y[i] - sum_y / n);
  }
  Line line;
  line.slope = uu > 0 ? uy / uu : 0;
  line.offset = (sum_y - line.slope * sum_u) / n;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double left = y[i] - line.offset - line.slope * stretched(x[i], p);
    line.squares += left * left;
  }
  return line;
}

/// The exponent with the least squares: a coarse grid, and a finer one around the best.
double best_exponent(const std::vector<double>& x, const std::vector<double>& y) {
  double best = 1, least = std::numeric_limits<double>::infinity();
  const auto search = [&](double from, double to, double step) {
    for (double p = from; p <= to; p += step) {
      const double squares = fit_line(x, y, p).squares;
      if (squares < least) {
        least = squares;
        best = p;
      }
    }
  };
  search(kLeastExponent, kMostExponent, 0.05);
  const double coarse = best;
  search(std::max(coarse - 0.05, kLeastExponent), std::min(coarse + 0.05, kMostExponent), 0.001);
  return best;
}

PowerLaw as_power_law(const Line& line, double p) {
  if (std::abs(p) < 1e-9) return {line.offset, line.slope, 0};
  return {line.offset - line.slope / p, line.slope / p, p};
}

bool changes(const std::vector<double>& y) {
  const auto [least, most] = std::minmax_element(y.begin(), y.end());
  return *most - *least > kSmallestChange * std::abs(*most);
}

/// The values of y in the order of x.
std::vector<double> in_order_of(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<std::size_t> order(x.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return x[a] < x[b]; });
  std::vector<double> sorted;
  sorted.reserve(order.size());
  for (const std::size_t i : order) sorted.push_back(y[i]);
  return sorted;
}

bool has_one_direction(const std::vector<double>& x, const std::vector<double>& y) {
  const std::vector<double> sorted = in_order_of(x, y);
  return std::is_sorted(sorted.begin(), sorted.end()) ||
         std::is_sorted(sorted.rbegin(), sorted.rend());
}

bool is_near(double exponent, double whole) { return std::abs(exponent - whole) <= kNearWhole; }

/// Whether the points lie near to the law with this exponent.
bool is_as_good(const std::vector<double>& x, const std::vector<double>& y, double exponent) {
  const auto [least, most] = std::minmax_element(y.begin(), y.end());
  const double mean_square = fit_line(x, y, exponent).squares / static_cast<double>(x.size());
  return std::sqrt(mean_square) <= kAsGood * (*most - *least);
}

const char* words_of_growth(double exponent) {
  if (is_near(exponent, 1)) return "linear";
  if (is_near(exponent, 2)) return "quadratic";
  if (is_near(exponent, 3)) return "cubic";
  if (exponent > 3) return "more than cubic";
  if (exponent > 2) return "between quadratic and cubic";
  if (exponent > 1) return "between linear and quadratic";
  return exponent > kNearWhole ? "less than linear" : "levels off";
}

const char* words_of_fall(double exponent) {
  if (is_near(exponent, -1)) return "falls as the inverse";
  if (is_near(exponent, 1)) return "falls linearly";
  if (exponent < -1) return "falls faster than the inverse";
  return exponent > 1 ? "falls faster and faster" : "falls more slowly than the inverse";
}

}  // namespace

std::optional<double> PowerLaw::reaches(double y) const {
  const double rest = (y - offset) / factor;
  if (!std::isfinite(rest)) return std::nullopt;
  if (exponent == 0) return std::exp(rest);
  return rest > 0 ? std::optional(std::pow(rest, 1 / exponent)) : std::nullopt;
}

std::optional<PowerLaw> fit_power_law(const std::vector<double>& x, const std::vector<double>& y) {
  if (x.size() < 2 || !changes(y) || !has_one_direction(x, y)) return std::nullopt;
  if (x.size() == 2) return as_power_law(fit_line(x, y, 1), 1);
  const double best = best_exponent(x, y);
  const double whole = std::round(best);
  const double exponent = is_near(best, whole) && is_as_good(x, y, whole) ? whole : best;
  return as_power_law(fit_line(x, y, exponent), exponent);
}

std::string scaling_words(const std::vector<double>& x,
                          const std::vector<double>& y,
                          const std::optional<PowerLaw>& law) {
  if (!law) return changes(y) ? "up and down" : "constant";
  const std::vector<double> sorted = in_order_of(x, y);
  const bool grows = sorted.back() > sorted.front();
  if (x.size() == 2) return fmt::format("{}; a third value says how", grows ? "grows" : "falls");
  return grows ? words_of_growth(law->exponent) : words_of_fall(law->exponent);
}

}  // namespace estimator
