#include "sim/world/compare_tensors.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/norm.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "estimator/base/files.h"

namespace sim {
namespace {

using estimator::Json;

/// The whole model's tensors in the order that they are broadcast in.
struct WholeTensor {
  std::string name;
  std::vector<int64_t> shape;
};
template <class Visitor>
void visit_fields(Visitor& visit, WholeTensor& tensor) {
  visit("name", tensor.name, "path in the model");
  visit("shape", tensor.shape, "whole");
}

struct WholeIteration {
  double median_gradient_norm = 0;
  std::vector<WholeTensor> tensors;
};
template <class Visitor>
void visit_fields(Visitor& visit, WholeIteration& iteration) {
  visit("median_gradient_norm", iteration.median_gradient_norm, "over the tensors");
  visit("tensors", iteration.tensors, "in order");
}

double norm_of(const at::Tensor& tensor) { return tensor.norm().item().toDouble(); }

Json describe(const WholeModel& whole) {
  std::vector<WholeIteration> iterations;
  for (const Snapshot& snapshot : whole) {
    WholeIteration& iteration = iterations.emplace_back();
    std::vector<double> norms;
    for (const TensorSnapshot& tensor : snapshot.tensors) {
      iteration.tensors.push_back({.name = tensor.name, .shape = tensor.shape});
      auto gradient = tensor.gradient;
      norms.push_back(norm_of(tensor_over(gradient)));
    }
    iteration.median_gradient_norm = median(norms);
  }
  return estimator::to_json(iterations);
}

/// Compares the tensors of one iteration as they come.
class IterationComparison {
 public:
  IterationComparison(int64_t iteration,
                      double median_gradient_norm,
                      Snapshot& real,
                      const ComparedRank& rank,
                      RankVerification& verification)
      : iteration_(iteration),
        median_gradient_norm_(median_gradient_norm),
        real_(real),
        rank_(rank),
        verification_(verification) {}

  void compare(const WholeTensor& whole, const at::Tensor& gradient, const at::Tensor& parameter) {
    const auto found =
        std::find_if(real_.tensors.begin(), real_.tensors.end(), [&](const TensorSnapshot& tensor) {
          return tensor.name == whole.name;
        });
    if (found == real_.tensors.end()) return;  // another stage's
    const auto part = [&](const at::Tensor& full) {
      return models::shard_of(full.view(whole.shape), found->sharding, found->tensor_place)
          .reshape(-1);
    };
    compare("gradient", *found, part(gradient).slice(0, found->begin, found->end), found->gradient);
    compare("parameter",
            *found,
            part(parameter).slice(0, found->held_begin, found->held_end),
            found->parameter);
  }

 private:
  void compare(const char* kind,
               const TensorSnapshot& tensor,
               const at::Tensor& expected,
               std::vector<float>& found) {
    if (found.empty()) return;
    const double norm = norm_of(expected);
    const double difference = norm_of(tensor_over(found) - expected);
    const double allowed = allowed_difference(rank_.tolerance, norm, median_gradient_norm_);
    ++verification_.tensors;
    verification_.largest_error = std::max(verification_.largest_error, difference / allowed);
    if (difference <= allowed) return;  // false for a difference that is no number, too
    verification_.differences.add(
        {.rank = rank_.rank,
         .claim = Claim::kTensors,
         .where = fmt::format("{} of {} in iteration_{}", kind, tensor.name, iteration_),
         .expected = fmt::format("norm {:.6g}", norm),
         .found =
             fmt::format("norm of the difference {:.3g}, allowed {:.3g}", difference, allowed)});
  }

  const int64_t iteration_;
  const double median_gradient_norm_;
  Snapshot& real_;
  const ComparedRank& rank_;
  RankVerification& verification_;
};

int64_t elements_of(const WholeTensor& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), int64_t{1}, std::multiplies<>());
}

/// On rank 0 `values` are sent; elsewhere they are received, `elements` of them.
at::Tensor broadcast(c10d::Backend& world, std::vector<float>& values, int64_t elements) {
  values.resize(static_cast<std::size_t>(elements));
  at::Tensor tensor = tensor_over(values);
  if (world.getSize() == 1) return tensor;
  std::vector<at::Tensor> tensors{tensor};
  world.broadcast(tensors)->wait();
  return tensor;
}

}  // namespace

void compare_tensors(World& world,
                     c10d::Backend& world_group,
                     const WholeModel& whole,
                     std::vector<Snapshot> real,
                     const ComparedRank& rank,
                     RankVerification& verification) {
  constexpr const char* kKey = "whole model";
  if (rank.rank == 0) world.set(kKey, describe(whole).dump());
  std::vector<WholeIteration> iterations;
  estimator::FieldReader reader(kKey);
  reader.read(estimator::parse_json(world.get(kKey, 0), kKey), iterations, "");
  reader.throw_if_any();
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    IterationComparison comparison(static_cast<int64_t>(i),
                                   iterations[i].median_gradient_norm,
                                   real.at(i),
                                   rank,
                                   verification);
    for (std::size_t t = 0; t < iterations[i].tensors.size(); ++t) {
      const WholeTensor& tensor = iterations[i].tensors[t];
      std::vector<float> gradient, parameter;
      if (rank.rank == 0) {
        gradient = whole.at(i).tensors.at(t).gradient;
        parameter = whole.at(i).tensors.at(t).parameter;
      }
      const at::Tensor full_gradient = broadcast(world_group, gradient, elements_of(tensor));
      const at::Tensor full_parameter = broadcast(world_group, parameter, elements_of(tensor));
      comparison.compare(tensor, full_gradient, full_parameter);
    }
  }
}

}  // namespace sim
