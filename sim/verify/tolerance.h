// When a sharded tensor counts as equal to the same part of the whole model's.
//
// Sharding changes the order of sums and the places of roundings, so equality is not bitwise. For
// each tensor the norm of the difference may be
//
//     max(relative x max(norm of the tensor, floor x median gradient norm), roundings x rounding)
//
// Norms, because the elements of one tensor differ in size by orders; the floor, because some
// gradients are zero in exact arithmetic (a key's bias shifts all scores of a row alike), so that
// all that they hold is rounding.
//
// In fp32 `relative` is a constant and `roundings` is 0. In a 16-bit type how far rounding carries
// a tensor depends on the model, on what cancels in that tensor and on the CPU's kernels, so it is
// measured: `rounding` is the distance of the whole model's tensor to the same tensor of the same
// model in fp32, and `relative` is `roundings` times the median over the tensors of rounding /
// norm.
//
// `roundings` is 4. Roundings are random: two runs that round independently, r times as much in the
// one as in the other, are sqrt(1 + r) x rounding apart. A sharded run rounds more. Of a product
// that t ranks share, the parts and their running sums are rounded: t roundings of 1/t of the
// variance, then one each of 2/t, 3/t ... t/t: 1 + (t + 2)(t - 1) / 2t times the variance of one
// rounding, 5.4 at 8 ranks. Two of the ten results on a token's way through a layer (norm, query,
// attention, projection, sum; norm, first, activation, second, sum) are such products: r = (8 + 2
// x 5.4) / 10 = 1.9, sqrt(1 + r) = 1.7. Both distances are draws: where they have 16 independent
// parts, one ratio in a thousand is beyond sqrt(5.2) = 2.3 (the F distribution of 16 and 16). 1.7
// x 2.3 = 3.9.
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

/// What is known of a tensor, all as Euclidean norms.
struct TensorNorms {
  double norm = 0;             ///< of the whole model's
  double rounding = 0;         ///< of the whole model's less the same in fp32; 0 in fp32
  double median_gradient = 0;  ///< over all gradients of the iteration
};

/// fp32: 1e-5 and 1e-3. A 16-bit type: of tensors whose rounding / norm has this median.
Tolerance tolerance_of(estimator::Dtype dtype, double median_rounding);

/// What the norm of the difference may be.
double allowed_difference(const Tolerance& tolerance, const TensorNorms& norms);

/// What a loss may differ by from the whole model's, which is `wide_loss` in fp32: as tensors do,
/// with the one rounding of the loss itself where the two are closer than that.
double allowed_loss_difference(estimator::Dtype dtype, double loss, double wide_loss);

/// The middle value, the lower of two; 0 of none.
double median(std::vector<double> values);

}  // namespace sim
