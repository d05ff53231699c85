#include "models/optimizer/muon.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "estimator/plan/muon_parameters.h"

namespace models {
namespace {

struct Coefficients {
  double a, b, c;
};
/// `quintic` of _COEFFICIENT_SETS in muon_utils.py, which go round.
constexpr std::array<Coefficients, 5> kQuintic = {{{4.0848, -6.8946, 2.9270},
                                                   {3.9505, -6.3029, 2.6377},
                                                   {3.7418, -5.5913, 2.3037},
                                                   {2.8769, -3.1427, 1.2046},
                                                   {2.8366, -3.0525, 1.2012}}};

at::Tensor newton_schulz_step(const at::Tensor& x, const Coefficients& of) {
  const at::Tensor gram = at::matmul(x, x.mT());
  const at::Tensor polynomial = at::addmm(gram, gram, gram, of.b, of.c);
  return at::addmm(x, polynomial, x, of.a, 1);
}

at::Tensor normalized(const at::Tensor& matrix, double smallest_norm) {
  const at::Tensor norm = at::linalg_vector_norm(matrix, 2, at::IntArrayRef{-2, -1}, true);
  return matrix / norm.clamp_min(smallest_norm).expand_as(matrix);
}

/// A list of tensors that torch.distributed.all_gather fills: it gathers into one tensor, and
/// copies from there.
std::vector<at::Tensor> gather_list(const at::Tensor& part, Communicator* group) {
  const int64_t ranks = group != nullptr ? group->size() : 1;
  std::vector<at::Tensor> parts;
  for (int64_t rank = 0; rank < ranks; ++rank) parts.push_back(at::empty_like(part));
  const int64_t rows = part.size(0);
  const at::Tensor together = at::empty({ranks * rows, part.size(1)}, part.options());
  if (group != nullptr) {
    group->all_gather(together, part);
  } else {
    together.copy_(part);
  }
  for (int64_t rank = 0; rank < ranks; ++rank) {
    parts[rank].copy_(together.narrow(0, rank * rows, rows));
  }
  return parts;
}

/// Of the whole matrix, of which `part` is what this rank has along `dim`.
at::Tensor part_of_orthogonalised(const at::Tensor& part,
                                  int64_t dim,
                                  Communicator* group,
                                  const MuonSettings& settings) {
  const std::vector<at::Tensor> parts = gather_list(part, group);
  const at::Tensor whole = at::cat(parts, dim);
  const int64_t index = group != nullptr ? group->index() : 0;
  return orthogonalised(whole, settings).chunk(static_cast<int64_t>(parts.size()), dim)[index];
}

/// `spectral` of get_muon_scale_factor.
double scale_of(const at::Tensor& part, int64_t dim, int64_t ranks) {
  std::array<int64_t, 2> size = {part.size(0), part.size(1)};
  if (dim >= 0) size[static_cast<std::size_t>(dim)] *= ranks;
  return std::sqrt(static_cast<double>(std::max(size[0], size[1])));
}

/// How one parameter is split over tensor ranks.
struct Split {
  int64_t dim = -1;  ///< -1: each rank works on what it has
  Communicator* group = nullptr;
};

Split split_of(const Parameter& parameter,
               const MuonSettings& settings,
               const ProcessGroups& groups) {
  if (settings.tensor_mode == estimator::MuonTensorMode::kBlockwise) return {};
  return {.dim = parameter.sharding.dim,
          .group = (parameter.expert ? groups.expert_tensor : groups.tensor).get()};
}

at::Tensor scaled_update(const at::Tensor& momentum,
                         const Split& split,
                         const MuonSettings& settings) {
  const int64_t ranks = split.group != nullptr ? split.group->size() : 1;
  const at::Tensor update =
      split.dim < 0 ? orthogonalised(momentum, settings)
                    : part_of_orthogonalised(momentum, split.dim, split.group, settings);
  return update * scale_of(momentum, split.dim, ranks) * settings.extra_scale;
}

/// Queries, keys and values are matrices of their own. Their rows lie together in groups.
at::Tensor update_of_parts(const at::Tensor& momentum,
                           const std::vector<int64_t>& group_rows,
                           const Split& split,
                           const MuonSettings& settings) {
  int64_t of_group = 0;
  for (const int64_t rows : group_rows) of_group += rows;
  const int64_t count = momentum.size(0) / of_group, columns = momentum.size(1);
  std::vector<at::Tensor> parts;
  parts.reserve(group_rows.size());
  for (const at::Tensor& part :
       momentum.view({count, of_group, columns}).split_with_sizes(group_rows, 1)) {
    parts.push_back(part.reshape({-1, columns}));
  }
  std::vector<at::Tensor> updates;
  updates.reserve(parts.size());
  for (const at::Tensor& part : parts) {
    updates.push_back(scaled_update(part, split, settings).view({count, -1, columns}));
  }
  parts.clear();
  return at::cat(updates, 1).view(momentum.sizes());
}

bool has_parts(const Parameter& parameter, const MuonSettings& settings) {
  if (!settings.split_qkv || parameter.group_rows.empty()) return false;
  int64_t of_group = 0;
  for (const int64_t rows : parameter.group_rows) of_group += rows;
  return parameter.value.size(0) % of_group == 0;
}

}  // namespace

bool is_of_muon(const Parameter& parameter) {
  return estimator::is_of_muon(parameter.value.dim(), parameter.of_vocabulary);
}

at::Tensor orthogonalised(const at::Tensor& matrix, const MuonSettings& settings) {
  const bool transposed = matrix.size(0) > matrix.size(1);
  at::Tensor x = normalized(transposed ? matrix.mT() : matrix, settings.smallest_norm);
  if (settings.bf16) x = x.to(at::kBFloat16);
  for (int64_t step = 0; step < settings.steps; ++step) {
    x = newton_schulz_step(x, kQuintic[static_cast<std::size_t>(step) % kQuintic.size()]);
  }
  x = x.to(at::kFloat);
  return transposed ? x.mT() : x;
}

void step_muon(const std::vector<MuonMatrix>& matrices,
               const OptimizerSettings& settings,
               const ProcessGroups& groups) {
  const MuonSettings& muon = settings.muon;
  at::Tensor update;  // held until the next one is there
  for (const MuonMatrix& each : matrices) {
    const auto shape = each.parameter->value.sizes();
    const at::Tensor weights = each.weights.view(shape);
    at::Tensor gradient = each.gradient.view(shape);
    const at::Tensor momentum = each.momentum.view(shape);
    weights.add_(weights, -settings.weight_decay * settings.learning_rate);
    momentum.lerp_(gradient, 1 - muon.momentum);
    gradient = muon.nesterov ? gradient.lerp(momentum, muon.momentum) : momentum;
    const Split split = split_of(*each.parameter, muon, groups);
    update = has_parts(*each.parameter, muon)
                 ? update_of_parts(gradient, each.parameter->group_rows, split, muon)
                 : scaled_update(gradient, split, muon);
    weights.add_(update, -settings.learning_rate);
  }
}

}  // namespace models
