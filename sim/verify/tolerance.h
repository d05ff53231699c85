// When a sharded tensor counts as equal to the same part of the whole model's tensor.
//
// Sharding changes the order of sums and where numbers are rounded, so equality is not bitwise. For
// each tensor the norm of the difference may be at most
//
//     max(relative x max(norm of the tensor, floor x median gradient norm), roundings x rounding)
//
// Norms are compared, and not elements, because the elements of one tensor differ by orders of
// magnitude. The floor is needed because some gradients are zero in exact arithmetic (a key's bias
// shifts all scores of a row by the same amount), so that they hold rounding errors only.
//
// In fp32 `relative` is a constant and `roundings` is 0. In a 16-bit type the rounding error of a
// tensor depends on the model, on what cancels in that tensor and on the CPU's kernels, so it is
// measured: `rounding` is the distance between the whole model's tensor and the same tensor of the
// same model in fp32, and `relative` is `roundings` times the median of rounding / norm over the
// tensors.
//
// `roundings` is 4, for this reason. Rounding errors are random. If two runs round independently,
// and the variance of the one is r times that of the other, their distance is sqrt(1 + r) x
// rounding. A sharded run rounds more often. In a matrix product that t ranks share, the parts and
// their running sums are rounded: t roundings with 1/t of the variance, then one each with 2/t, 3/t
// ... t/t. Together this is 1 + (t + 2)(t - 1) / 2t times the variance of one rounding, 5.4 for 8
// ranks. A layer computes ten results for a token (norm, query, attention, projection, sum; norm,
// first, activation, second, sum), of which two are such products: r = (8 + 2 x 5.4) / 10 = 1.9,
// and sqrt(1 + r) = 1.7. Both distances are random too: if they have 16 independent parts, one
// ratio in a thousand is above sqrt(5.2) = 2.3 (the F distribution of 16 and 16). 1.7 x 2.3 = 3.9.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/plan/plan.h"

namespace sim {

struct Tolerance {
  double relative = 0;
  double floor = 0;
  double roundings = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, Tolerance& tolerance) {
  visit("relative", tolerance.relative, "of a tensor's norm");
  visit("floor", tolerance.floor, "of the median gradient norm");
  visit("roundings", tolerance.roundings, "of a tensor's distance to fp32");
}

/// Euclidean norms of a tensor that the tolerance needs.
struct TensorNorms {
  double norm = 0;             ///< of the whole model's tensor
  double rounding = 0;         ///< distance of that tensor to the same in fp32; 0 in fp32
  double median_gradient = 0;  ///< median over all gradients of the iteration
};

/// The tolerance. In fp32 `relative` is 1e-5 and `floor` 1e-3. In a 16-bit type it follows from the
/// median of rounding / norm over the tensors.
Tolerance tolerance_of(estimator::Dtype dtype, double median_rounding);

/// The largest allowed norm of the difference.
double allowed_difference(const Tolerance& tolerance, const TensorNorms& norms);

/// How much a loss may differ from the whole model's `loss`, which is `wide_loss` in fp32. The rule
/// is that of a tensor: `rounding` is the distance of the two losses, and the unit roundoff of the
/// type stands for the median of rounding / norm.
double allowed_loss_difference(estimator::Dtype dtype, double loss, double wide_loss);

/// The median; of two middle values the lower one; 0 if there are no values.
double median(std::vector<double> values);

}  // namespace sim
