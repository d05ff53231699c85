// Whole parameters parted over the data ranks (see owned_parameters.h).
#include "models/data_parallel/owned_parameters.h"

#include <gtest/gtest.h>

#include <ATen/ops/full.h>

#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "models/data_parallel/gradient_buffer.h"
#include "models/optimizer/optimizer.h"
#include "tests/models/post_backend.h"
#include "tests/models/small_shards.h"

namespace models {
namespace {

using Sizes = std::vector<int64_t>;

/// Each filled with its place.
std::deque<Parameter> parameters_of(const Sizes& sizes, at::ScalarType dtype = at::kFloat) {
  std::deque<Parameter> parameters;
  for (const int64_t size : sizes) {
    const auto place = static_cast<double>(parameters.size());
    parameters.emplace_back().value = at::full({size}, place, dtype).requires_grad_(true);
  }
  return parameters;
}

// By falling size 100, 30, 30, 20, 7. The 20 finds 100, 30 and 30, the 7 finds 100, 50 and 30.
const Sizes kSizes = {7, 30, 100, 20, 30};

std::vector<Sizes> parted(int64_t ranks) {
  auto parameters = parameters_of(kSizes);
  std::vector<Sizes> places;
  for (const auto& owned : part_by_size(list_of(parameters), ranks)) {
    Sizes& of_rank = places.emplace_back();
    for (const Parameter* parameter : owned) of_rank.push_back(parameter->value[0].item().toLong());
  }
  return places;
}

TEST(OwnedParameters, GoToTheRankThatHasFewest) {
  EXPECT_EQ(parted(3), (std::vector<Sizes>{{2}, {1, 3}, {4, 0}}));
  EXPECT_EQ(parted(1), (std::vector<Sizes>{{2, 1, 4, 3, 0}}));
}

// By rising size 7, 20, 30, 30, 100 to ranks 0, 1, 2, 2, 1 (Megatron-LM's ping-pong).
TEST(DealtParameters, GoToTheRanksInTurnAndBack) {
  auto parameters = parameters_of(kSizes);
  std::vector<Sizes> places;
  for (const ParameterList& owned : deal_in_turn(list_of(parameters), 3)) {
    Sizes& of_rank = places.emplace_back();
    for (const Parameter* parameter : owned) of_rank.push_back(parameter->value[0].item().toLong());
  }
  EXPECT_EQ(places, (std::vector<Sizes>{{0}, {3, 2}, {1, 4}}));
}

TEST(OwnedParameters, LeaveRanksWithoutAny) {
  EXPECT_EQ(parted(7), (std::vector<Sizes>{{2}, {1}, {4}, {3}, {0}, {}, {}}));
}

/// Keeps what is broadcast, and leaves it as it is.
class BroadcastLog final : public c10d::Backend {
 public:
  BroadcastLog(int rank, int size) : c10d::Backend(rank, size) {}
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    EXPECT_TRUE(options.asyncOp);
    sent.push_back({options.rootRank, tensors[0].numel()});
    return {};
  }
  std::vector<Sizes> sent;  ///< owner and elements of each
};

/// The parameters of kSizes as one of `ranks` sees them.
struct OneOfRanks {
  OneOfRanks(int rank, int ranks, at::ScalarType dtype)
      : parameters(parameters_of(kSizes, dtype)),
        backend(c10::make_intrusive<BroadcastLog>(rank, ranks)),
        buffer(list_of(parameters),
               {.shape = {.data_ranks = ranks},
                .type = dtype,
                .whole_owners = WholeOwners::kBySize,
                .data_group = std::make_shared<Communicator>(backend),
                .observer = observer}) {}

  SilentObserver observer;
  std::deque<Parameter> parameters;
  c10::intrusive_ptr<BroadcastLog> backend;
  GradientBuffer buffer;
};

TEST(OwnedParameters, AreBroadcastOnceForEachRankThatOwnsSome) {
  OneOfRanks three(1, 3, at::kFloat), seven(6, 7, at::kFloat);
  three.buffer.gather_parameters();
  EXPECT_EQ(three.backend->sent, (std::vector<Sizes>{{0, 100}, {1, 50}, {2, 37}}));
  seven.buffer.gather_parameters();
  EXPECT_EQ(seven.backend->sent, (std::vector<Sizes>{{0, 100}, {1, 30}, {2, 30}, {3, 20}, {4, 7}}));
}

TEST(OwnedParameters, LieOwnerByOwnerInOneBufferAndKeepTheirValues) {
  const OneOfRanks one(1, 3, at::kFloat);
  const float* flat = one.parameters[2].value.data_ptr<float>();  // the largest lies first
  const Sizes begins = {180, 100, 0, 130, 150};
  for (std::size_t place = 0; place < kSizes.size(); ++place) {
    const at::Tensor& value = one.parameters[place].value;
    EXPECT_EQ(value.data_ptr<float>(), flat + begins[place]);
    EXPECT_TRUE(value.detach().eq(static_cast<double>(place)).all().item().toBool());
  }
}

// bf16: the owner of 30 and 20 elements has fp32 weights and two moments for them alone.
TEST(OwnedParameters, HaveStateAtTheirOwnerOnly) {
  OneOfRanks one(1, 3, at::kBFloat16);
  DistributedOptimizer optimizer(one.buffer, {});
  optimizer.step();
  EXPECT_EQ(optimizer.master_weight_bytes(), 4 * 50);
  EXPECT_EQ(optimizer.state_bytes(), 8 * 50);
  EXPECT_EQ(optimizer.step_scalar_bytes(), 4);
  for (const OwnedPiece& piece : one.buffer.owned_pieces()) {
    const bool mine =
        piece.parameter == &one.parameters[1] || piece.parameter == &one.parameters[3];
    EXPECT_EQ(piece.end - piece.begin, mine ? piece.parameter->value.numel() : 0);
  }
  EXPECT_EQ(one.buffer.gradient_padding(), 0);
  EXPECT_EQ(one.buffer.parameter_padding(), 0);
}

TEST(OwnedParameters, OfARankWithoutAnyHaveNoState) {
  OneOfRanks one(6, 7, at::kBFloat16);
  DistributedOptimizer optimizer(one.buffer, {});
  optimizer.step();
  EXPECT_EQ(optimizer.master_weight_bytes() + optimizer.state_bytes(), 0);
  EXPECT_EQ(one.backend->sent.size(), 5u);
}

/// A gradient of its own for each parameter, and two steps.
void train(GradientBuffer& buffer, std::deque<Parameter>& parameters, double gradient) {
  DistributedOptimizer optimizer(buffer, {.kind = estimator::Optimizer::kSgd});
  for (int step = 0; step < 2; ++step) {
    buffer.begin_iteration();
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      (parameters[p].value * (gradient * static_cast<double>(p + 1))).sum().backward();
    }
    buffer.finish_reduction();
    optimizer.step();
  }
}

// The mean of the ranks' gradients is that of the one rank.
TEST(OwnedParameters, AreTheSameOnEveryRankAsOnOne) {
  SilentObserver observer;
  auto expected = parameters_of(kSizes);
  GradientBuffer alone(list_of(expected), {.observer = observer});
  train(alone, expected, 2);

  constexpr int kRanks = 3;
  Post post;
  std::vector<std::deque<Parameter>> ranks(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      ranks[rank] = parameters_of(kSizes);
      const auto backend = c10::make_intrusive<PostBackend>(post, rank, kRanks);
      GradientBuffer buffer(list_of(ranks[rank]),
                            {.shape = {.data_ranks = kRanks},
                             .whole_owners = WholeOwners::kBySize,
                             .data_group = std::make_shared<Communicator>(backend),
                             .observer = observer});
      train(buffer, ranks[rank], 1 + rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& parameters : ranks) {
    for (std::size_t place = 0; place < kSizes.size(); ++place) {
      const at::Tensor value = parameters[place].value.detach();
      EXPECT_LT(relative_difference(value, expected[place].value.detach()), 1e-6) << place;
      EXPECT_NE(value[0].item().toDouble(), static_cast<double>(place));
    }
  }
}

}  // namespace
}  // namespace models
