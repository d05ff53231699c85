// A sweep: the estimates of all combinations of several values for some options of a plan, and how
// memory and time grow along each option.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/document_head.h"
#include "estimator/base/option.h"
#include "estimator/cluster/cluster_estimate.h"

namespace estimator {

struct SweepAxis {
  std::string flag;                 ///< "--tp"
  std::string path;                 ///< "parallelism.tensor"; "" for the number of GPUs
  std::vector<std::string> values;  ///< as they were typed: "4k"
  std::vector<double> numbers;      ///< what they mean; empty if one of them is no number
};
template <class Visitor>
void visit_fields(Visitor& visit, SweepAxis& axis) {
  visit("flag", axis.flag, "what is typed");
  visit("path", axis.path, "key of the plan; \"\": the number of GPUs");
  visit("values", axis.values, "as they were typed");
  visit("numbers", axis.numbers, "what they mean; empty: not all are numbers");
}

struct SweepResult {
  Fit outcome = Fit::kDoesNotFit;
  int64_t worst_rank = 0;
  int64_t peak_bytes = 0;  ///< of the worst rank, with all that is not the allocator's
  int64_t headroom_bytes = 0;
  int64_t limit_bytes = 0;
  int64_t gpus = 0;
  std::string framework;
  double iteration_seconds = 0;
  double tokens_per_second = 0;
  double samples_per_second = 0;
  double mfu = 0;
  double bytes_per_token = 0;  ///< peak_bytes for each token of one micro-batch on the worst rank
  std::optional<double> scaling_efficiency;  ///< see add_scaling()
};
template <class Visitor>
void visit_fields(Visitor& visit, SweepResult& result) {
  bool fits = result.outcome == Fit::kFits;
  visit("fits", fits, "every rank fits, also with the upper end of what it may need");
  visit("outcome", result.outcome, "the verdict");
  visit("worst_rank", result.worst_rank, "the rank that needs most");
  visit("peak_bytes", result.peak_bytes, "what it needs");
  visit("headroom_bytes", result.headroom_bytes, "what is left; negative: it does not fit");
  visit("limit_bytes",
        result.limit_bytes,
        "what it may need: the GPU's memory less what is to stay free (--headroom)");
  visit("gpus", result.gpus, "of the cluster");
  visit("framework", result.framework, "whose layers were simulated");
  visit("iteration_seconds", result.iteration_seconds, "one optimizer step");
  visit("tokens_per_second", result.tokens_per_second, "of the cluster");
  visit("samples_per_second", result.samples_per_second, "sequences, of the cluster");
  visit("mfu", result.mfu, "model FLOPs over the dense peak");
  visit("bytes_per_token",
        result.bytes_per_token,
        "peak of the worst rank for each token of a micro-batch that it works on");
  visit("scaling_efficiency",
        result.scaling_efficiency,
        "tokens/s of a GPU over those of the point with the fewest GPUs, where an axis changes "
        "their number; the values of the other axes are the same");
}

/// The result of an estimated plan.
SweepResult sweep_result(const Plan& plan, const ClusterEstimate& estimate);

/// One combination: a result, or why there is none.
struct SweepPoint {
  std::vector<std::string> values;  ///< of each axis
  std::optional<std::string> refusal;
  std::optional<SweepResult> result;
};
template <class Visitor>
void visit_fields(Visitor& visit, SweepPoint& point) {
  visit("values", point.values, "of each axis");
  visit("refusal", point.refusal, "why the combination cannot be");
  visit("result", point.result, "of the estimate");
}

/// How a quantity grows along one axis, while the other axes keep their values.
struct SweepScaling {
  std::string flag;
  std::string others;  ///< the values of the other axes, "--tp 2 --pp 4"
  std::string quantity;
  std::string words;
  std::optional<double> exponent, offset, factor;
};
template <class Visitor>
void visit_fields(Visitor& visit, SweepScaling& scaling) {
  visit("flag", scaling.flag, "of the axis");
  visit("others", scaling.others, "values of the other axes");
  visit("quantity", scaling.quantity, "peak_bytes or iteration_seconds");
  visit("words", scaling.words, "the scaling class");
  visit("exponent", scaling.exponent, "p of offset + factor x value^p; 0: ln(value)");
  visit("offset", scaling.offset, "the constant part; 0 with two values");
  visit("factor", scaling.factor, "of the part that grows");
}

/// Where the plan stops fitting along one axis, while the other axes keep their values.
struct SweepLimit {
  std::string flag;
  std::string others;
  std::optional<std::string> last_that_fits;
  std::optional<std::string> first_that_does_not;
  Fit outcome = Fit::kDoesNotFit;   ///< of the first that does not surely fit
  std::optional<double> estimated;  ///< where the law of peak_bytes reaches limit_bytes
};
template <class Visitor>
void visit_fields(Visitor& visit, SweepLimit& limit) {
  visit("flag", limit.flag, "of the axis");
  visit("others", limit.others, "values of the other axes");
  visit("last_that_fits", limit.last_that_fits, "the last value beside it that surely fits");
  visit("first_that_does_not", limit.first_that_does_not, "the first value that does not");
  visit("outcome", limit.outcome, "the verdict of the first value that does not surely fit");
  visit("estimated",
        limit.estimated,
        "value at which the law of peak_bytes reaches limit_bytes, where there is one");
}

struct Sweep {
  DocumentHead head{1, "sweep"};
  std::vector<SweepAxis> axes;
  std::vector<SweepPoint> points;
  std::vector<SweepScaling> scaling;
  std::vector<SweepLimit> limits;
};
template <class Visitor>
void visit_fields(Visitor& visit, Sweep& sweep) {
  visit_head(visit, sweep.head);
  visit("axes", sweep.axes, "options with several values");
  visit("points", sweep.points, "every combination; the last axis changes fastest");
  visit("scaling", sweep.scaling, "how memory and time grow along axes of numbers");
  visit("limits", sweep.limits, "where the plan stops fitting");
}

/// The values of the points of all combinations, the last axis fastest.
std::vector<std::vector<std::string>> combinations(const std::vector<SweepAxis>& axes);

/// Fills `scaling` and `limits` from the points: a row for each axis of numbers and each
/// combination of the others that has at least two results. Where axes change the number of GPUs,
/// each result gets its scaling_efficiency: the tokens/s of one of its GPUs over those of the
/// result with the fewest GPUs (of several, the fastest) that has the same values of all other
/// axes.
void add_scaling(Sweep& sweep);

}  // namespace estimator
