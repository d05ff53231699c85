// Which operators are counted, and with which FLOPs and bytes. Expected numbers are worked by hand.
#include <ATen/ops/_embedding_bag.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_index_put_impl.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d_with_indices_backward.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/nll_loss_backward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/zeros.h>

#include "sim/tracking/operator_call.h"
#include "tests/sim/recording/recorded_run.h"

namespace sim {
namespace {

using Shapes = std::vector<std::vector<int64_t>>;

TEST(Operators, MatrixProductIsTwoFlopsForEachMultiplyAdd) {
  const at::Tensor left = at::ones({2, 3}), right = at::ones({3, 5});
  const auto profile = RecordedRun().of([&](Recorder&) { at::mm(left, right); });
  const auto mm = only(profile, "aten::mm");
  EXPECT_EQ(mm.flops, 2 * 2 * 3 * 5);
  EXPECT_EQ(mm.bytes, 4 * (2 * 3 + 3 * 5 + 2 * 5));
  EXPECT_EQ(mm.shapes, (Shapes{{2, 3}, {3, 5}}));
  EXPECT_EQ(mm.dtype, "Float");
}

TEST(Operators, BatchedProductCountsEveryMatrix) {
  const at::Tensor left = at::ones({7, 2, 3}), right = at::ones({7, 3, 5});
  const auto profile = RecordedRun().of([&](Recorder&) { at::bmm(left, right); });
  EXPECT_EQ(only(profile, "aten::bmm").flops, 7 * 2 * 2 * 3 * 5);
}

TEST(Operators, SummandThatBetaLeavesOutIsNotRead) {
  const at::Tensor sum = at::ones({7, 2, 5});
  const at::Tensor left = at::ones({7, 2, 3}), right = at::ones({7, 3, 5});
  const double product_bytes = 4 * 7 * (2 * 3 + 3 * 5 + 2 * 5);
  const auto added = RecordedRun().of([&](Recorder&) { at::baddbmm(sum, left, right); });
  const auto left_out = RecordedRun().of([&](Recorder&) { at::baddbmm(sum, left, right, 0); });
  EXPECT_EQ(only(added, "aten::baddbmm").bytes, product_bytes + 4 * 7 * 2 * 5);
  EXPECT_EQ(only(left_out, "aten::baddbmm").bytes, product_bytes);
}

TEST(Operators, OnlyTheInnermostComputingOperatorIsCounted) {
  const at::Tensor input = at::ones({4, 3}), weight = at::ones({5, 3}), bias = at::ones({5});
  const auto profile = RecordedRun().of([&](Recorder&) { at::linear(input, weight, bias); });
  EXPECT_EQ(names_of_operators(profile), std::vector<std::string>{"aten::addmm"});
  EXPECT_EQ(only(profile, "aten::addmm").flops, 2 * 4 * 3 * 5);
}

TEST(Operators, ViewsAndAllocationsAreNotCounted) {
  const at::Tensor tensor = at::ones({4, 6});
  const auto profile = RecordedRun().of([&](Recorder&) {
    tensor.view({24}).t();
    tensor.permute({1, 0}).select(0, 1).unsqueeze(0).expand({3, 4}).detach();
    tensor.split(2, 1);
    tensor.chunk(2, 0);
    tensor.reshape({2, 12}).as_strided({2}, {1});
    at::empty({100});
    at::empty_like(tensor);
  });
  EXPECT_EQ(names_of_operators(profile), std::vector<std::string>{});
}

TEST(Operators, ReshapeThatMustCopyCountsItsCopy) {
  const at::Tensor tensor = at::ones({4, 6}).t();
  const auto profile = RecordedRun().of([&](Recorder&) { tensor.reshape({24}); });
  EXPECT_EQ(names_of_operators(profile), std::vector<std::string>{"aten::copy_"});
  EXPECT_EQ(only(profile, "aten::copy_").bytes, 2 * 24 * 4);
}

TEST(Operators, EqualCallsAreOneRecord) {
  const at::Tensor a = at::ones({8}), b = at::ones({8}), c = at::ones({9});
  const auto profile = RecordedRun().of([&](Recorder&) {
    for (int i = 0; i < 3; ++i) at::add(a, b);
    at::add(c, c);
  });
  const auto adds = operators_named(profile, "aten::add");
  ASSERT_EQ(adds.size(), 2u);
  EXPECT_EQ(adds[0].executed_count, 3);
  EXPECT_EQ(adds[1].executed_count, 1);
}

TEST(Operators, TensorUsedTwiceIsReadOnce) {
  const at::Tensor tensor = at::ones({8});
  const auto profile = RecordedRun().of([&](Recorder&) { at::add(tensor, tensor); });
  EXPECT_EQ(only(profile, "aten::add").bytes, 8 * 4 + 8 * 4);
}

TEST(Operators, NumbersOfTheProgramAreNotInputs) {
  const at::Tensor tensor = at::ones({8});
  const auto profile = RecordedRun().of([&](Recorder&) { at::mul(tensor, 2); });
  const auto product = only(profile, "aten::mul");
  EXPECT_EQ(product.shapes, (Shapes{{8}}));
  EXPECT_EQ(product.bytes, 2 * 8 * 4);
}

TEST(Operators, InPlaceIsReadAndWritten) {
  at::Tensor tensor = at::ones({8});
  const at::Tensor other = at::ones({8});
  const auto profile = RecordedRun().of([&](Recorder&) { tensor.add_(other); });
  const auto add = only(profile, "aten::add_");
  EXPECT_EQ(add.bytes, 3 * 8 * 4);
  EXPECT_EQ(add.flops, 8);
}

TEST(Operators, OutputArgumentIsOnlyWritten) {
  const at::Tensor left = at::ones({2, 3}), right = at::ones({3, 5});
  at::Tensor output = at::ones({2, 5});
  const auto profile = RecordedRun().of([&](Recorder&) { at::mm_out(output, left, right); });
  EXPECT_EQ(only(profile, "aten::mm").bytes, 4 * (2 * 3 + 3 * 5 + 2 * 5));
  EXPECT_EQ(only(profile, "aten::mm").shapes.size(), 2u);
}

TEST(Operators, OverwrittenTensorIsOnlyWritten) {
  const at::Tensor tensor = at::ones({8});
  const auto profile = RecordedRun().of([&](Recorder&) { tensor.fill_(2); });
  EXPECT_EQ(only(profile, "aten::fill_").bytes, 8 * 4);
}

TEST(Operators, ExpandedTensorIsReadOnce) {
  const at::Tensor row = at::ones({1, 8}).expand({100, 8}), other = at::ones({100, 8});
  const auto profile = RecordedRun().of([&](Recorder&) { at::add(row, other); });
  EXPECT_EQ(only(profile, "aten::add").bytes, 4 * (8 + 100 * 8 + 100 * 8));
}

TEST(Operators, PointwiseOnesTellWhetherTheirInputsFillMemoryInOneOrder) {
  const at::Tensor both = at::ones({4, 8}), row = at::ones({8});
  const at::Tensor half = both.narrow(1, 0, 4), square = at::ones({4, 4});
  const auto is_strided = [](const auto& run) {
    const auto profile = RecordedRun().of([&](Recorder&) { run(); });
    EXPECT_EQ(profile.operators.size(), 1u);
    return profile.operators.at(0).is_strided;
  };
  EXPECT_FALSE(is_strided([&] { at::add(both, both); }));
  EXPECT_FALSE(is_strided([&] { at::add(square.t(), square.t()); }));
  EXPECT_FALSE(is_strided([&] { at::mul(both, 2); }));
  EXPECT_TRUE(is_strided([&] { at::neg(half); }));
  EXPECT_TRUE(is_strided([&] { at::add(both, row); }));
  EXPECT_TRUE(is_strided([&] { at::add(square, square.t()); }));
  EXPECT_TRUE(is_strided([&] { square.t().contiguous(); }));
  EXPECT_FALSE(is_strided([&] { at::mm(square, square.t()); })) << "not pointwise";
}

// cuBLAS documentation, "Tensor Core Usage". The tokens of a linear layer are rows of no matrix in
// memory, neither in forward nor in backward; a vocabulary is.
TEST(Operators, ProductsTellWhetherRowsInMemoryAreMultiplesOf16Bytes) {
  const at::Tensor odd_tokens = at::ones({5, 16}, at::kBFloat16);
  const at::Tensor weight = at::ones({8, 16}, at::kBFloat16);
  const at::Tensor gradient = at::ones({5, 8}, at::kBFloat16);
  const at::Tensor odd_words = at::ones({7, 16}, at::kBFloat16);
  const auto is_misaligned = [](const at::Tensor& left, const at::Tensor& right) {
    const auto profile = RecordedRun().of([&](Recorder&) { at::mm(left, right); });
    return only(profile, "aten::mm").is_misaligned;
  };
  EXPECT_FALSE(is_misaligned(odd_tokens, weight.t())) << "forward";
  EXPECT_FALSE(is_misaligned(gradient, weight)) << "of the input";
  EXPECT_FALSE(is_misaligned(gradient.t(), odd_tokens)) << "of the weight";
  EXPECT_TRUE(is_misaligned(odd_tokens, odd_words.t())) << "rows of the result";
  EXPECT_TRUE(is_misaligned(at::ones({5, 7}, at::kBFloat16), odd_words)) << "rows of the first";
  EXPECT_TRUE(is_misaligned(at::ones({8, 17}, at::kBFloat16).narrow(1, 1, 16), weight.t()))
      << "distances of rows";
  EXPECT_TRUE(is_misaligned(
      at::ones({6, 16}, at::kBFloat16).flatten().narrow(0, 1, 80).view({5, 16}), weight.t()))
      << "the address";
  const at::Tensor left = at::ones({2, 8, 16}, at::kBFloat16);
  const at::Tensor right = at::ones({2, 16, 7}, at::kBFloat16);
  const auto profile = RecordedRun().of([&](Recorder&) { at::bmm(left, right); });
  EXPECT_TRUE(only(profile, "aten::bmm").is_misaligned);
}

TEST(Operators, ConversionsTellBothTypes) {
  const at::Tensor tensor = at::ones({8});
  const auto profile = RecordedRun().of([&](Recorder&) { tensor.to(at::kBFloat16); });
  const auto copy = only(profile, "aten::copy_");
  EXPECT_EQ(copy.dtype, "BFloat16");
  EXPECT_EQ(copy.other_dtype, "Float");
}

// As models/shard/kernel_scope.h writes it.
TEST(Operators, OfAKernelsScopeAreOneKernel) {
  const at::Tensor a = at::ones({8}), b = at::ones({8});
  const auto profile = RecordedRun().of([&](Recorder&) {
    at::neg(a);
    at::RecordFunction scope(at::RecordScope::USER_SCOPE);
    scope.before("te::fused");
    const at::Tensor sum = at::add(a, b).neg_().exp_();
    scope.setOutputs(std::vector<c10::IValue>{std::vector<at::Tensor>{a, b, at::Tensor()},
                                              std::vector<at::Tensor>{sum}});
  });
  EXPECT_EQ(names_of_operators(profile), (std::vector<std::string>{"aten::neg", "te::fused"}));
  const auto kernel = only(profile, "te::fused");
  EXPECT_EQ(kernel.bytes, 3 * 8 * 4);
  EXPECT_EQ(kernel.flops, 8);
  EXPECT_EQ(kernel.shapes, (Shapes{{8}, {8}}));
}

TEST(Operators, EmbeddingReadsOnlyTheRowsItLooksUp) {
  const at::Tensor table = at::ones({1000, 8}), tokens = at::zeros({3}, at::kLong);
  const auto profile = RecordedRun().of([&](Recorder&) { at::embedding(table, tokens); });
  ASSERT_EQ(profile.operators.size(), 1u);
  EXPECT_EQ(profile.operators[0].bytes, 3 * 8 + 2 * 3 * 8 * 4);  // indices, rows in, rows out
}

TEST(Operators, IndexedUpdateTouchesOnlyItsRows) {
  at::Tensor table = at::zeros({1000, 8});
  const at::Tensor rows = at::zeros({3}, at::kLong), added = at::ones({3, 8});
  const auto profile = RecordedRun().of([&](Recorder&) { table.index_add_(0, rows, added); });
  const double row_bytes = 3 * 8 * 4;
  EXPECT_EQ(only(profile, "aten::index_add_").bytes, 3 * 8 + 3 * row_bytes);
  EXPECT_EQ(only(profile, "aten::index_add_").flops, 3 * 8);
}

TEST(Operators, BagsReadARowForEachIndex) {
  const at::Tensor table = at::ones({1000, 8});
  const at::Tensor indices = at::zeros({20}, at::kLong), bags = at::zeros({2}, at::kLong);
  const auto profile =
      RecordedRun().of([&](Recorder&) { at::_embedding_bag(table, indices, bags); });
  const double results = only(profile, "aten::_embedding_bag").bytes - (20 + 2) * 8 - 20 * 8 * 4;
  EXPECT_GE(results, 2 * 8 * 4);
  EXPECT_LT(results, 1000) << "sums, and the bag of each index";
}

// Indices of 3 rows; what is written, not what goes in.
TEST(Operators, IndexedWriteWritesRowsOfItsTableHoweverLittleGoesIn) {
  at::Tensor table = at::zeros({1000, 8});
  const at::Tensor rows = at::zeros({3}, at::kLong), value = at::ones({});
  const auto bytes = [&](const char* name, const auto& run) {
    const auto profile = RecordedRun().of([&](Recorder&) { run(); });
    return only(profile, name).bytes;
  };
  const double indices = 3 * 8, written = 3 * 8 * 4;
  c10::List<std::optional<at::Tensor>> at_rows;
  at_rows.push_back(rows);
  const auto put = [&](const at::Tensor& values, bool accumulates) {
    return bytes("aten::_index_put_impl_",
                 [&] { at::_index_put_impl_(table, at_rows, values, accumulates); });
  };
  EXPECT_EQ(put(value, false), indices + 4 + written);
  EXPECT_EQ(put(at::ones({3, 8}), false), indices + written + written);
  EXPECT_EQ(put(at::ones({8}), true), indices + 8 * 4 + 2 * written);
  EXPECT_EQ(bytes("aten::index_fill_", [&] { table.index_fill_(0, rows, value); }),
            indices + 4 + written);
  EXPECT_EQ(bytes("aten::index_copy_",
                  [&] {
                    table.index_copy_(0, rows, at::ones({3, 8}));
                  }),
            indices + written + written);
}

TEST(Operators, IndicesOfSeveralDimsAreBroadcast) {
  const OperatorTraits traits = traits_of({"aten::index_put_", ""}, c10::kCPU);
  const at::Tensor table = at::zeros({10, 20, 8}), value = at::ones({});
  const at::Tensor column = at::zeros({3, 1}, at::kLong), row = at::zeros({1, 4}, at::kLong);
  c10::List<std::optional<at::Tensor>> indices;
  indices.push_back(column);
  indices.push_back(row);
  const std::vector<c10::IValue> inputs = {table, indices, value, false};
  OperatorCall call{.op = &traits};
  measure_inputs(inputs, call);
  EXPECT_EQ(call.bytes, (3 + 4) * 8 + 4 + 3 * 4 * 8 * 4);
}

TEST(Operators, ScatteringIntoACopyCountsTheCopyAndTheRows) {
  const at::Tensor table = at::zeros({1000, 8}), added = at::ones({3, 8});
  const at::Tensor places = at::zeros({3, 8}, at::kLong);
  const auto profile =
      RecordedRun().of([&](Recorder&) { at::scatter_add(table, 0, places, added); });
  const double row_bytes = 3 * 8 * 4;
  EXPECT_EQ(only(profile, "aten::copy_").bytes, 2 * 1000 * 8 * 4);
  EXPECT_EQ(only(profile, "aten::scatter_add").bytes, 3 * 8 * 8 + 3 * row_bytes);
}

TEST(Operators, BackwardOfPoolingReadsNoInput) {
  const OperatorTraits traits =
      traits_of({"aten::max_pool2d_with_indices_backward", ""}, c10::kCUDA);
  EXPECT_EQ(traits.unread_arguments, 0b10u);
}

// A query and the 15 keys before it: the first queries have fewer.
TEST(Operators, AttentionInAWindowIsThatOfItsKeys) {
  const OperatorTraits traits = traits_of({"aten::_flash_attention_forward", ""}, c10::kCUDA);
  const int64_t queries = 64;
  const at::Tensor heads = at::ones({1, queries, 2, 8});
  std::vector<c10::IValue> inputs = {heads, heads, heads, {}, {}, queries, queries, 0.0};
  inputs.insert(inputs.end(), {/*is_causal=*/true, false, {}, int64_t{15}, int64_t{0}});
  OperatorCall call{.op = &traits};
  measure_inputs(inputs, call);
  EXPECT_EQ(call.flops, 2.0 * 2 * (8 + 8) * (16 * 64 - 15 * 16 / 2));
  inputs[8] = false;
  inputs[12] = int64_t{15};  // and 15 behind it
  measure_inputs(inputs, call);
  EXPECT_EQ(call.flops, 2.0 * 2 * (8 + 8) * (31 * 64 - 2 * 15 * 16 / 2));
  inputs[11] = inputs[12] = int64_t{-1};
  measure_inputs(inputs, call);
  EXPECT_EQ(call.flops, 2.0 * 2 * (8 + 8) * 64 * 64);
}

TEST(Operators, AttentionIsFourFlopsForEachPairAndHalfWhenCausal) {
  const int64_t b = 2, h = 3, sq = 16, sk = 32, d = 8;
  const at::Tensor query = at::ones({b, h, sq, d}), key = at::ones({b, h, sk, d});
  const auto flops = [&](bool causal) {
    const auto profile = RecordedRun().of(
        [&](Recorder&) { at::scaled_dot_product_attention(query, key, key, {}, 0.0, causal); });
    return only(profile, "aten::_scaled_dot_product_flash_attention_for_cpu").flops;
  };
  EXPECT_EQ(flops(false), 4.0 * b * h * sq * sk * d);
  EXPECT_EQ(flops(true), 2.0 * b * h * sq * sk * d);
}

TEST(Operators, AttentionBackwardIsTwoAndAHalfForwards) {
  const at::Tensor query = at::ones({1, 2, 16, 8}).requires_grad_();
  const auto profile = RecordedRun().of([&](Recorder&) {
    at::scaled_dot_product_attention(query, query, query, {}, 0.0, true).sum().backward();
  });
  const std::string name = "aten::_scaled_dot_product_flash_attention_for_cpu";
  EXPECT_EQ(only(profile, name + "_backward").flops, 2.5 * only(profile, name).flops);
}

// Three sequences of 100 tokens in the mean, the longest of 150: a query is taken to meet 125 keys.
TEST(Operators, AttentionOfSequencesOneBehindTheOtherIsThatOfEachOne) {
  const OperatorTraits traits = traits_of({"aten::_flash_attention_forward", ""}, c10::kCUDA);
  const at::Tensor heads = at::ones({300, 2, 8}), ends = at::ones({4}, at::kInt);
  std::vector<c10::IValue> inputs = {
      heads, heads, heads, ends, ends, int64_t{150}, int64_t{150}, 0.0, /*is_causal=*/false};
  OperatorCall call{.op = &traits};
  measure_inputs(inputs, call);
  EXPECT_EQ(call.flops, 2.0 * 300 * 2 * 125 * (8 + 8));
  inputs[3] = inputs[4] = c10::IValue();
  measure_inputs(inputs, call);
  EXPECT_EQ(call.flops, 2.0 * 300 * 2 * 300 * (8 + 8));
}

TEST(Operators, BackwardOfTheLossReadsNoProbabilitiesAndWritesOneElementARow) {
  const at::Tensor probabilities = at::ones({4, 7}), one = at::ones({});
  const at::Tensor target = at::zeros({4}, at::kLong);
  const auto profile = RecordedRun().of([&](Recorder&) {
    at::nll_loss_backward(one, probabilities, target, {}, at::Reduction::Mean, -100, one);
  });
  EXPECT_EQ(only(profile, "aten::nll_loss_backward").bytes, 4 + 4 * 8 + 4 * 4);
  EXPECT_EQ(only(profile, "aten::zero_").bytes, 4 * 7 * 4);
}

TEST(Operators, CopiesOfListsOnlyWriteTheirDestination) {
  EXPECT_EQ(traits_of({"aten::_foreach_copy_", ""}, c10::kCUDA).bytes, ByteRule::kNotRead);
}

TEST(Operators, ListsOfTensorsHaveTheirElementsAsShape) {
  std::vector<at::Tensor> weights = {at::ones({4, 5}), at::ones({10})};
  std::vector<at::Tensor> gradients = {at::ones({4, 5}), at::ones({10})};
  std::vector<at::Tensor> means = {at::zeros({4, 5}), at::zeros({10})};
  std::vector<at::Tensor> variances = {at::zeros({4, 5}), at::zeros({10})};
  std::vector<at::Tensor> steps = {at::ones({}), at::ones({})};
  const auto profile = RecordedRun{.phase = "iteration_1.optimizer_step"}.of([&](Recorder&) {
    at::_fused_adamw_(
        weights, gradients, means, variances, {}, steps, 1e-3, 0.9, 0.95, 0.1, 1e-8, false, false);
  });
  const auto adam = only(profile, "aten::_fused_adamw_");
  EXPECT_EQ(adam.shapes, (Shapes{{30}, {30}, {30}, {30}, {2}}));
  EXPECT_EQ(adam.bytes, 4 * (4 * 30 + 2) + 4 * 3 * 30);  // reads all, writes all but the gradients
  EXPECT_EQ(adam.phase, "optimizer_step");
  EXPECT_EQ(adam.direction, estimator::Direction::kOptimizerStep);
  EXPECT_EQ(adam.module_kind, "optimizer");
}

TEST(Operators, NothingIsCountedOutsideTheRecording) {
  const auto memory = make_memory_reader(estimator::DeviceKind::kCpu);
  Recorder recorder({.memory = *memory});
  const at::Tensor tensor = at::ones({8});
  recorder.begin_phase(kForwardBackward);
  at::add(tensor, tensor);
  recorder.start_recording();
  recorder.stop_recording();
  at::add(tensor, tensor);
  recorder.on_collective({});
  recorder.end_phase();
  estimator::RankProfile profile;
  profile.micro_batches = {.total = 1, .executed = 1};
  recorder.finish(profile);
  EXPECT_TRUE(profile.operators.empty());
  EXPECT_TRUE(profile.collectives.empty());
}

}  // namespace
}  // namespace sim
