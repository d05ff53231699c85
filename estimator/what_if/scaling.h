// How a quantity grows with one option of a plan: the power that fits best, and words for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace estimator {

/// y = offset + factor * x^exponent (factor * ln x for the exponent 0).
struct PowerLaw {
  double offset = 0;
  double factor = 0;
  double exponent = 0;

  /// The x at which the law reaches `y`; empty if there is none above 0.
  std::optional<double> reaches(double y) const;
};

/// The law through the points, of which two or more are needed, with x > 0 and all different. Two
/// points have a straight line, which is good between them alone. Of three or more
/// the exponent from -3 to 4 is taken that leaves the least squares of y, or a whole one beside it
/// if the points lie within 2 % of their range from its law. Empty if y does not always grow or
/// always fall, or changes by less than 2 %.
std::optional<PowerLaw> fit_power_law(const std::vector<double>& x, const std::vector<double>& y);

/// "linear", "between linear and quadratic", "levels off", "falls as the inverse", ...; "grows"
/// or "falls" where two points do not say how; "constant" or "up and down" where no law fits.
std::string scaling_words(const std::vector<double>& x,
                          const std::vector<double>& y,
                          const std::optional<PowerLaw>& law);

}  // namespace estimator
