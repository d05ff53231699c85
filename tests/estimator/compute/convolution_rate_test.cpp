#include "estimator/compute/convolution_rate.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

const Gpu& h200() { return *find_gpu("h200-sxm"); }

/// Of each of 96 channels, 64 images of 56 x 56, filters of 7 x 7.
ConvolutionShape each_channel(ConvolutionPass pass, bool is_pytorchs) {
  constexpr double kElements = 64.0 * 96 * 56 * 56;
  return {.pass = pass,
          .is_pytorchs = is_pytorchs,
          .groups = 96,
          .window = 49,
          .inputs = kElements,
          .outputs = kElements};
}

double microseconds(const ConvolutionShape& shape) {
  return 1e6 * shape.multiply_adds() / convolution_rate(shape, h200()).multiply_adds_per_second;
}

// An H200 took 665, 874 and 1,307 us by PyTorch's kernels, and 141, 333 and 123 by cuDNN's.
TEST(ConvolutionRate, OfEachChannelIsThatOfItsKernel) {
  EXPECT_NEAR(microseconds(each_channel(ConvolutionPass::kForward, true)) / 665, 1, 0.05);
  EXPECT_NEAR(microseconds(each_channel(ConvolutionPass::kBackwardData, true)) / 874, 1, 0.05);
  EXPECT_NEAR(microseconds(each_channel(ConvolutionPass::kBackwardFilter, true)) / 1307, 1, 0.3);
  EXPECT_NEAR(microseconds(each_channel(ConvolutionPass::kForward, false)) / 141, 1, 0.25);
  EXPECT_NEAR(microseconds(each_channel(ConvolutionPass::kBackwardData, false)) / 333, 1, 0.05);
  EXPECT_NEAR(microseconds(each_channel(ConvolutionPass::kBackwardFilter, false)) / 123, 1, 0.25);
}

// A stride of 2: 128 images of 112 x 112, 96 channels, 2,526 us by PyTorch, 479 by cuDNN.
TEST(ConvolutionRate, OfAGradientCountsTheElementsThatItWrites) {
  ConvolutionShape strided{.pass = ConvolutionPass::kBackwardData,
                           .is_pytorchs = true,
                           .groups = 96,
                           .window = 9,
                           .inputs = 128.0 * 96 * 112 * 112,
                           .outputs = 128.0 * 96 * 56 * 56};
  EXPECT_NEAR(microseconds(strided) / 2526, 1, 0.15);
  strided.is_pytorchs = false;
  EXPECT_NEAR(microseconds(strided) / 479, 1, 0.10);
}

// 32 images of 432 x 28 x 28, groups of 24 channels, 3 x 3 with a stride of 2: 72 us in bf16, 303
// in fp32. Forward, and without a stride, it is faster by far.
TEST(ConvolutionRate, OfAGradientOfGroupsWithAStrideIsLow) {
  ConvolutionShape shape{.pass = ConvolutionPass::kBackwardData,
                         .groups = 18,
                         .in = 24,
                         .out = 24,
                         .window = 9,
                         .inputs = 32.0 * 432 * 28 * 28,
                         .outputs = 32.0 * 432 * 14 * 14};
  EXPECT_NEAR(microseconds(shape) / 72, 1, 0.02);
  shape.is_fp32 = true;
  EXPECT_NEAR(microseconds(shape) / 303, 1, 0.02);
  shape.pass = ConvolutionPass::kForward;
  EXPECT_LT(microseconds(shape), 50);
  shape.pass = ConvolutionPass::kBackwardData;
  shape.outputs = shape.inputs;
  EXPECT_LT(microseconds(shape), 200);
}

// The first layer of a ResNet, 64 images: 387 us forward, 235 for its filters. The patches of a
// vision transformer: 382 and 152.
TEST(ConvolutionRate, OfImagesIsFarBelowThatOfTheirProduct) {
  ConvolutionShape image{.in = 3, .out = 64, .window = 49, .outputs = 64.0 * 64 * 112 * 112};
  EXPECT_NEAR(microseconds(image) / 387, 1, 0.05);
  image.pass = ConvolutionPass::kBackwardFilter;
  EXPECT_NEAR(microseconds(image) / 235, 1, 0.05);
  ConvolutionShape patches{.in = 3, .out = 768, .window = 256, .outputs = 64.0 * 768 * 14 * 14};
  EXPECT_NEAR(microseconds(patches) / 382, 1, 0.05);
  patches.pass = ConvolutionPass::kBackwardFilter;
  EXPECT_NEAR(microseconds(patches) / 152, 1, 0.05);
}

TEST(ConvolutionRate, OfManyChannelsIsThatOfTheProduct) {
  ConvolutionShape usual{.is_fp32 = true, .in = 128, .out = 128, .window = 9, .outputs = 1e6};
  EXPECT_EQ(convolution_rate(usual, h200()).multiply_adds_per_second, 0);
  EXPECT_EQ(convolution_rate(usual, h200()).slowdown, 1);
  usual.pass = ConvolutionPass::kBackwardFilter;
  EXPECT_GT(convolution_rate(usual, h200()).slowdown, 1.5);
  usual.window = 1;
  EXPECT_EQ(convolution_rate(usual, h200()).slowdown, 1);
}

TEST(ConvolutionRate, OfFewChannelsIsKnownOnTensorCoresAlone) {
  ConvolutionShape image{.is_fp32 = true, .in = 3, .out = 64, .window = 49, .outputs = 1e6};
  EXPECT_GT(convolution_rate(image, h200()).multiply_adds_per_second, 0);
  image.has_tensor_cores = false;
  EXPECT_EQ(convolution_rate(image, h200()).multiply_adds_per_second, 0);
}

TEST(ConvolutionRate, FollowsTheMultiprocessors) {
  const ConvolutionShape shape = each_channel(ConvolutionPass::kForward, true);
  const Gpu& a100 = *find_gpu("a100-sxm-80");
  EXPECT_DOUBLE_EQ(convolution_rate(shape, a100).multiply_adds_per_second * 132 / 108,
                   convolution_rate(shape, h200()).multiply_adds_per_second);
}

}  // namespace
}  // namespace estimator
