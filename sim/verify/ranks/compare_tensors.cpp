#include "sim/verify/ranks/compare_tensors.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"

namespace sim {
namespace {

using estimator::Json;

/// The whole model's tensors in the order that they are broadcast in.
struct TensorHeader {
  std::string name;
  std::vector<int64_t> shape;
};
template <class Visitor>
void visit_fields(Visitor& visit, TensorHeader& tensor) {
  visit("name", tensor.name, "path in the model");
  visit("shape", tensor.shape, "whole");
}

struct IterationHeader {
  double median_gradient_norm = 0;
  Tolerance gradients;
  Tolerance parameters;
  bool has_wide = false;
  std::vector<TensorHeader> tensors;
};
template <class Visitor>
void visit_fields(Visitor& visit, IterationHeader& iteration) {
  visit("median_gradient_norm", iteration.median_gradient_norm, "over the tensors");
  visit("gradients", iteration.gradients, "what they may differ by");
  visit("parameters", iteration.parameters, "what they may differ by");
  visit("has_wide", iteration.has_wide, "each tensor is followed by the same in fp32");
  visit("tensors", iteration.tensors, "in order");
}

Json describe(const WholeModel& whole) {
  std::vector<IterationHeader> iterations;
  for (const WholeIteration& iteration : whole) {
    IterationHeader& header = iterations.emplace_back(
        IterationHeader{.median_gradient_norm = iteration.median_gradient_norm,
                        .gradients = iteration.gradients,
                        .parameters = iteration.parameters,
                        .has_wide = !iteration.wide.tensors.empty()});
    for (const TensorSnapshot& tensor : iteration.snapshot.tensors) {
      header.tensors.push_back({.name = tensor.name, .shape = tensor.shape});
    }
  }
  return estimator::to_json(iterations);
}

/// The whole of a tensor, flat, and the same in fp32 where that is another one.
struct WholeTensor {
  at::Tensor values;
  at::Tensor wide;
};

/// Compares the tensors of one iteration as they come.
class IterationComparison {
 public:
  IterationComparison(int64_t iteration,
                      const IterationHeader& header,
                      Snapshot& real,
                      RankVerification& verification)
      : iteration_(iteration), header_(header), real_(real), verification_(verification) {}

  void compare(const TensorHeader& header,
               const WholeTensor& gradient,
               const WholeTensor& parameter) {
    const auto found =
        std::find_if(real_.tensors.begin(), real_.tensors.end(), [&](const TensorSnapshot& tensor) {
          return tensor.name == header.name;
        });
    if (found == real_.tensors.end()) return;  // another stage's
    const auto part = [&](const WholeTensor& whole, int64_t begin, int64_t end) {
      const auto part_of = [&](const at::Tensor& full) {
        return models::shard_of(full.view(header.shape), found->sharding, found->tensor_place)
            .reshape(-1)
            .slice(0, begin, end);
      };
      return WholeTensor{part_of(whole.values),
                         whole.wide.defined() ? part_of(whole.wide) : at::Tensor()};
    };
    compare("gradient of " + header.name,
            header_.gradients,
            part(gradient, found->begin, found->end),
            found->gradient);
    compare("parameter of " + header.name,
            header_.parameters,
            part(parameter, found->held_begin, found->held_end),
            found->parameter);
  }

 private:
  void compare(const std::string& what,
               const Tolerance& tolerance,
               const WholeTensor& expected,
               std::vector<float>& found) {
    if (found.empty()) return;
    const TensorNorms norms{
        .norm = norm_of(expected.values),
        .rounding = expected.wide.defined() ? norm_of(expected.values - expected.wide) : 0,
        .median_gradient = header_.median_gradient_norm};
    const double difference = norm_of(tensor_over(found) - expected.values);
    const double allowed = allowed_difference(tolerance, norms);
    ++verification_.tensors;
    verification_.largest_error = std::max(verification_.largest_error, difference / allowed);
    if (difference <= allowed) return;  // false for a difference that is no number, too
    verification_.differences.add(
        {.rank = verification_.rank,
         .claim = Claim::kTensors,
         .where = fmt::format("{} in iteration_{}", what, iteration_),
         .expected = fmt::format("norm {:.6g}", norms.norm),
         .found =
             fmt::format("norm of the difference {:.3g}, allowed {:.3g}", difference, allowed)});
  }

  const int64_t iteration_;
  const IterationHeader& header_;
  Snapshot& real_;
  RankVerification& verification_;
};

int64_t elements_of(const TensorHeader& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), int64_t{1}, std::multiplies<>());
}

/// What rank 0 has of one iteration, sent to all.
class IterationBroadcast {
 public:
  /// `whole` is null but on rank 0.
  IterationBroadcast(c10d::Backend& world,
                     const WholeIteration* whole,
                     const IterationHeader& header)
      : world_(world), whole_(whole), header_(header) {}

  WholeTensor tensor(std::size_t index, std::vector<float> TensorSnapshot::*values) const {
    const auto sent = [&](const Snapshot WholeIteration::*run) {
      std::vector<float> own;
      if (whole_ != nullptr) own = (whole_->*run).tensors.at(index).*values;
      return broadcast(own, elements_of(header_.tensors[index]));
    };
    return {sent(&WholeIteration::snapshot),
            header_.has_wide ? sent(&WholeIteration::wide) : at::Tensor()};
  }

 private:
  at::Tensor broadcast(std::vector<float>& values, int64_t elements) const {
    values.resize(static_cast<std::size_t>(elements));
    std::vector<at::Tensor> tensors{tensor_over(values).clone()};
    if (world_.getSize() > 1) world_.broadcast(tensors)->wait();
    return tensors[0];
  }

  c10d::Backend& world_;
  const WholeIteration* whole_;
  const IterationHeader& header_;
};

}  // namespace

void compare_tensors(World& world,
                     c10d::Backend& world_group,
                     const WholeModel& whole,
                     std::vector<Snapshot> real,
                     RankVerification& verification) {
  constexpr const char* kKey = "whole model";
  const bool has_whole = verification.rank == 0;
  if (has_whole) world.set(kKey, describe(whole).dump());
  std::vector<IterationHeader> iterations;
  estimator::FieldReader reader(kKey);
  reader.read(estimator::parse_json(world.get(kKey, 0), kKey), iterations, "");
  reader.throw_if_any();
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    const IterationHeader& header = iterations[i];
    IterationComparison comparison(static_cast<int64_t>(i), header, real.at(i), verification);
    const IterationBroadcast all(world_group, has_whole ? &whole.at(i) : nullptr, header);
    for (std::size_t t = 0; t < header.tensors.size(); ++t) {
      const WholeTensor gradient = all.tensor(t, &TensorSnapshot::gradient);
      const WholeTensor parameter = all.tensor(t, &TensorSnapshot::parameter);
      comparison.compare(header.tensors[t], gradient, parameter);
    }
  }
}

}  // namespace sim
