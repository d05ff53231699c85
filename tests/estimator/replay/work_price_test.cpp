#include "estimator/replay/work_price.h"

#include <gmock/gmock.h>

#include "estimator/communication/communication_time.h"
#include "estimator/communication/message_time.h"
#include "estimator/compute/compute_time.h"
#include "tests/estimator/replay/traced_rank.h"

namespace estimator {
namespace {

class WorkPriceTest : public testing::Test {
 protected:
  WorkPriceTest()
      : gpu_(*find_gpu("h100-sxm")),
        rates_(gpu_, nullptr, {}, 1, Priced::kKernels),
        fabric_(fabric_of(h100_cluster(2))) {
    profile_.program.emplace();
    profile_.program->communicators = {
        {.name = "dp", .size = 16, .rank = 0, .first_rank = 0, .rank_stride = 1}};
    profile_.trace.emplace();
  }

  WorkPrice price(const TraceWork& work) {
    profile_.trace->works = {work};
    return work_prices(profile_, rates_, fabric_).front();
  }
  static TraceWork product(const char* dtype, const char* result = "BFloat16") {
    return {.kind = WorkKind::kProduct,
            .name = "cublas",
            .dtype = dtype,
            .result_dtype = result,
            .shapes = {{1, 8192, 8192, 8192}},
            .flops = 2.0 * 8192 * 8192 * 8192};
  }
  double launch() const { return rates_.launch().kernel_seconds; }

  const Gpu& gpu_;
  GpuRates rates_;
  Fabric fabric_;
  RankProfile profile_;
};

TEST_F(WorkPriceTest, OfAProductIsThatOfTheSameOperator) {
  const OperatorRecord record{.name = "aten::mm",
                              .shapes = {{8192, 8192}, {8192, 8192}},
                              .dtype = "BFloat16",
                              .flops = 2.0 * 8192 * 8192 * 8192,
                              .bytes = 3.0 * 2 * 8192 * 8192};
  const WorkPrice bf16 = price(product("BFloat16"));
  EXPECT_DOUBLE_EQ(bf16.seconds, operator_price(record, rates_, Dtype::kBf16).seconds);
  EXPECT_EQ(bf16.work_class, WorkClass::kProducts);
  EXPECT_EQ(bf16.source, Source::kComputed);
}

TEST_F(WorkPriceTest, OfTf32HasTheShareOfItsPeakThatBf16Has) {
  const double bf16 = price(product("BFloat16")).seconds - launch();
  TraceWork tf32 = product("Float", "Float");
  const double fp32 = price(tf32).seconds;
  tf32.uses_tf32 = true;
  EXPECT_NEAR(price(tf32).seconds - launch(), bf16 * 2, 1e-6);
  EXPECT_GT(fp32, 5 * price(tf32).seconds);
}

// The first layer of a ResNet, 64 images, took 387 us on an H200 where its product takes 57.
TEST_F(WorkPriceTest, OfAConvolutionIsThatOfItsKind) {
  TraceWork images{.kind = WorkKind::kProduct,
                   .name = convolution_name(ConvolutionPass::kForward),
                   .dtype = "BFloat16",
                   .result_dtype = "BFloat16",
                   .shapes = {{1, 802816, 64, 147}, {3, 64, 49, 9633792, 51380224}},
                   .flops = 2.0 * 802816 * 64 * 147,
                   .bytes = 122048896};
  EXPECT_NEAR(price(images).seconds / 387e-6, 1, 0.05);
  EXPECT_EQ(price(images).work_class, WorkClass::kProducts);
  images.name = "cublas";
  EXPECT_LT(price(images).seconds, 100e-6);
}

TEST_F(WorkPriceTest, OfPytorchsConvolutionOfEachChannelIsByItsWindow) {
  const TraceWork forward{
      .kind = WorkKind::kKernel,
      .name = "at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel_generic<float>",
      .operator_name = "aten::_conv_depthwise2d",
      .dtype = "Float",
      .shapes = {{64, 96, 56, 56}, {96, 1, 7, 7}},
      .bytes = 2 * 77070336,
      .threads = 64 * 96 * 56 * 56,
      .bytes_source = BytesSource::kOperator};
  EXPECT_NEAR(price(forward).seconds / 634e-6, 1, 0.06);
  TraceWork gradient = forward;
  gradient.name = "at::native::(anonymous namespace)::conv_depthwise2d_grad_weight_kernel<float>";
  gradient.operator_name = "aten::convolution_backward";
  gradient.shapes = {{64, 96, 56, 56}, {64, 96, 56, 56}, {96, 1, 7, 7}};
  EXPECT_NEAR(price(gradient).seconds / 1286e-6, 1, 0.3);
}

TEST_F(WorkPriceTest, OfAttentionWithAMaskIsLonger) {
  TraceWork call{.kind = WorkKind::kKernel,
                 .operator_name = "aten::_scaled_dot_product_cudnn_attention",
                 .dtype = "BFloat16",
                 .shapes = {{2, 16, 4096, 128}, {2, 16, 4096, 128}, {2, 16, 4096, 128}},
                 .flops = 4.0 * 2 * 16 * 4096 * 4096 * 128,
                 .bytes = 4 * 33554432,
                 .bytes_source = BytesSource::kOperator};
  const double plain = price(call).seconds;
  call.has_mask = true;
  EXPECT_NEAR(price(call).seconds / plain, 1.8, 0.05);
}

// 700 tokens, 18,334 words, 200 wide: of 4 bytes each, 18,334 words are no multiple of 16 bytes,
// 18,332 are, and of 2 bytes neither is.
TEST_F(WorkPriceTest, OfSinglePrecisionIsNotThatOfUnalignedTensorCores) {
  const auto seconds = [&](int64_t words, const char* dtype, bool uses_tf32) {
    TraceWork work = product(dtype, dtype);
    work.shapes = {{1, 700, words, 200}};
    work.flops = 2.0 * 700 * 200 * static_cast<double>(words);
    work.uses_tf32 = uses_tf32;
    const int64_t row = words * (std::string(dtype) == "Float" ? 4 : 2);
    work.is_misaligned = row % 16 != 0;
    work.alignment = row & -row;
    return price(work).seconds - launch();
  };
  EXPECT_NEAR(seconds(18334, "Float", false) / seconds(18332, "Float", false), 1, 0.01);
  EXPECT_GT(seconds(18334, "Float", true), 2.5 * seconds(18332, "Float", true));
  EXPECT_NEAR(seconds(18334, "BFloat16", false) / seconds(18332, "BFloat16", false), 1, 0.01);
}

// 8,192 cubed, of 1,979 TFLOPS: 0.709, 0.674 and 0.511 are what power allows, where it allows 0.763
// of the 0.88 that bf16 reaches at full speed. 0.97 are left by 2,048 tiles on 132 multiprocessors
// and by 250 steps of start-up each. An H200 reached 1,527 with one scale for each tensor.
TEST_F(WorkPriceTest, OfFloat8IsThatOfItsScaling) {
  TraceWork fp8 = product("Float8_e4m3fn");
  const auto teraflops = [&](int64_t cublas_scale_mode) {
    fp8.scale_mode = cublas_scale_mode;
    return fp8.flops / (price(fp8).seconds - launch()) / 1e12;
  };
  constexpr double kFullSpeed = 0.88 / 0.763;
  EXPECT_NEAR(teraflops(0), 1979 * 0.709 * kFullSpeed * 0.9697 * 0.9704, 1);
  EXPECT_NEAR(teraflops(0), 1527, 15);
  EXPECT_NEAR(teraflops(3), 1979 * 0.674 * kFullSpeed * 0.9697 * 0.9704, 1);
  EXPECT_NEAR(teraflops(4), 1979 * 0.511 * kFullSpeed, 1);
  EXPECT_EQ(price(fp8).source, Source::kComputed);
  fp8.scale_mode = 2;  // MX, which a Hopper has not: the share of bf16
  EXPECT_EQ(price(fp8).source, Source::kAssumed);
}

// PyTorch launches CUTLASS's kernel for scales of rows.
TEST_F(WorkPriceTest, OfFloat8OutsideOfCublasIsThatOfRows) {
  TraceWork rows = product("Float8_e4m3fn");
  rows.scale_mode = 3;
  const TraceWork kernel{.name = "cutlass::device_kernel",
                         .operator_name = "aten::_scaled_mm",
                         .dtype = "Float8_e4m3fn",
                         .shapes = {{8192, 8192}, {8192, 8192}, {8192, 1}, {1, 8192}},
                         .flops = rows.flops,
                         .bytes_source = BytesSource::kOperator};
  EXPECT_DOUBLE_EQ(price(kernel).seconds, price(rows).seconds);
  EXPECT_EQ(price(kernel).work_class, WorkClass::kProducts);
}

TEST_F(WorkPriceTest, OfAProductOfAnUnknownTypeIsThatOfItsMemoryAndSaysSo) {
  const WorkPrice unknown = price(product("Float4_e2m1fn_x2", "Float4_e2m1fn_x2"));
  EXPECT_FALSE(unknown.is_known);
  const double bytes = 3.0 * 8192 * 8192;
  EXPECT_NEAR(unknown.seconds, bytes / rates_.memory_bytes_per_second(bytes) + launch(), 1e-12);
}

// NVIDIA's data sheet of the H100: 67 TFLOPS in FP64 with tensor cores, 1,979 TOPS in INT8, of
// 989.4 in bf16. FP64 has the share that bf16 sustains.
TEST_F(WorkPriceTest, OfFp64AndInt8HasAShareOfTheirPeakThatBf16Has) {
  const double bf16 = price(product("BFloat16")).seconds - launch();
  const WorkPrice fp64 = price(product("Double", "Double"));
  EXPECT_NEAR(product("Double").flops / (fp64.seconds - launch()), 0.763 * 67e12, 1e6);
  EXPECT_EQ(fp64.source, Source::kAssumed);
  EXPECT_NEAR((price(product("Char", "Int")).seconds - launch()) / bf16, 989.4 / 1979 / 0.6, 1e-6)
      << "cuBLAS has Ampere's kernels";
  TraceWork complex = product("ComplexFloat", "ComplexFloat");
  complex.flops *= 4;
  EXPECT_NEAR(price(complex).seconds - launch(),
              4 * (price(product("Float", "Float")).seconds - launch()),
              1e-9);
}

TEST_F(WorkPriceTest, OfAMisalignedProductIsLonger) {
  TraceWork odd = product("BFloat16");
  const double aligned = price(odd).seconds - launch();
  odd.is_misaligned = true;
  odd.alignment = 2;
  EXPECT_NEAR(aligned / (price(odd).seconds - launch()), 0.13, 1e-9);
  odd.alignment = 4;
  EXPECT_NEAR(aligned / (price(odd).seconds - launch()), 0.35, 1e-9);
  TraceWork fp64 = product("Double", "Double");
  const double of_fp64 = price(fp64).seconds;
  fp64.is_misaligned = true;
  EXPECT_EQ(price(fp64).seconds, of_fp64) << "its kernels load single elements";
}

// Measured on an H200: batches of fp32 of 1,024 x 1,024 x 64 in 0.78 and 0.75 ms, of 16 x 16 x 16
// in 40 and 43 us, of 8 x 8 x 8 in 123 and 130; of bf16 of 1,001 x 1,001 x 108 in 0.32 and 0.30 ms.
TEST_F(WorkPriceTest, OfABatchOfSmallProductsIsThatOfSmallTilesAndShortLoops) {
  const auto seconds = [&](const char* dtype, int64_t batch, int64_t side, int64_t k) {
    TraceWork work = product(dtype, dtype);
    work.shapes = {{batch, side, side, k}};
    work.flops = 2.0 * static_cast<double>(batch * side * side * k);
    work.is_misaligned = side % 8 != 0;
    work.alignment = 2;
    return price(work).seconds;
  };
  EXPECT_NEAR(seconds("Float", 192, 1024, 64) / 0.77e-3, 1, 0.25);
  EXPECT_NEAR(seconds("Float", 16384, 16, 16) / 42e-6, 1, 0.5);
  EXPECT_NEAR(seconds("Float", 65536, 8, 8) / 126e-6, 1, 0.5);
  EXPECT_LT(seconds("BFloat16", 96, 1001, 108), 0.7e-3) << "1.26 ms without tensor cores";
}

// Measured on an H200: 64 experts of 1,408 x 2,048 with 512 tokens each, 346 us forward and 444 for
// the weight; 8 of 14,336 x 4,096 with 2,048 tokens 2.98 ms.
TEST_F(WorkPriceTest, OfGroupedProductsIsThatOfABatchInOneKernel) {
  const auto seconds = [&](const std::vector<std::vector<int64_t>>& shapes, double flops) {
    return price({.name = "cutlass",
                  .operator_name = "aten::_grouped_mm",
                  .dtype = "BFloat16",
                  .shapes = shapes,
                  .flops = flops,
                  .bytes_source = BytesSource::kOperator})
        .seconds;
  };
  const double small = 2.0 * 32768 * 1408 * 2048, large = 2.0 * 16384 * 14336 * 4096;
  EXPECT_NEAR(seconds({{32768, 2048}, {64, 2048, 1408}, {64}}, small) / 346e-6, 1, 0.15);
  EXPECT_NEAR(seconds({{1408, 32768}, {32768, 2048}, {64}}, small) / 444e-6, 1, 0.15);
  EXPECT_NEAR(seconds({{16384, 4096}, {8, 4096, 14336}, {8}}, large) / 2.98e-3, 1, 0.15);
}

// pytorch pull request 138018: 1.4 GB/s to pageable memory.
TEST_F(WorkPriceTest, OfACopyIsSlowerWhereTheHostsMemoryIsPageable) {
  TraceWork read{.kind = WorkKind::kCopy, .name = kDeviceToHost, .bytes = 1 << 30};
  TraceWork write{.kind = WorkKind::kCopy, .name = kHostToDevice, .bytes = 1 << 30};
  const double pinned = price(read).seconds;
  read.is_pageable = write.is_pageable = true;
  EXPECT_NEAR(pinned - launch(), 1073741824.0 / 55.06e9, 1e-9);
  EXPECT_NEAR(price(read).seconds - launch(), 1073741824.0 / 1.4e9, 1e-9);
  EXPECT_GT(price(write).seconds, 5 * pinned);
  EXPECT_EQ(price(write).source, Source::kAssumed);
}

// 370 GB/s of NVLink 4, where the memory moves 1.6 TB/s of a copy; NCCL's LL hop of 0.6 us.
TEST_F(WorkPriceTest, OfOtherRanksMemoryIsThatOfTheLink) {
  TraceWork copy{.kind = WorkKind::kCopy, .name = kPeerToPeer, .bytes = 1 << 30};
  const double link = 1073741824.0 / 370e9;
  const WorkPrice copied = price(copy);
  EXPECT_NEAR(copied.seconds, link + launch(), 1e-9);
  EXPECT_EQ(copied.work_class, WorkClass::kCommunication);
  EXPECT_NEAR(copied.occupancy.ports.link, link / copied.seconds, 1e-9);
  EXPECT_EQ(copied.occupancy.multiprocessors, 0) << "a copy engine's";
  copy.name = kDeviceToDevice;
  EXPECT_LT(3 * price(copy).seconds, copied.seconds);

  TraceWork kernel{.name = "one_shot_all_reduce_kernel",
                   .operator_name = "symm_mem::one_shot_all_reduce",
                   .bytes = 1 << 20,
                   .peer_bytes = 1 << 30,
                   .threads = 132 * 2048,
                   .bytes_source = BytesSource::kOperator};
  EXPECT_NEAR(price(kernel).seconds, link + launch(), 1e-9);
  EXPECT_EQ(price(kernel).occupancy.multiprocessors, 1);
  kernel.bytes = int64_t{1} << 40;
  const WorkPrice own = price(kernel);
  EXPECT_NEAR(own.occupancy.ports.link, link / own.seconds, 1e-5) << "the memory takes longer";

  const WorkPrice signal = price({.kind = WorkKind::kSignal, .name = "barrier_kernel"});
  EXPECT_NEAR(signal.seconds, 0.6e-6 + launch(), 1e-12);
  EXPECT_EQ(signal.work_class, WorkClass::kCommunication);
}

TEST_F(WorkPriceTest, OfAKernelIsThatOfItsBytes) {
  const WorkPrice known = price({.name = "elementwise",
                                 .operator_name = "aten::add",
                                 .bytes = 1 << 30,
                                 .bytes_source = BytesSource::kOperator});
  EXPECT_NEAR(
      known.seconds, 1073741824.0 / rates_.memory_bytes_per_second(1 << 30) + launch(), 1e-12);
  EXPECT_TRUE(known.is_known);
  const WorkPrice triton =
      price({.name = "triton", .bytes = 1 << 30, .bytes_source = BytesSource::kParameters});
  EXPECT_DOUBLE_EQ(triton.seconds, known.seconds);
  EXPECT_EQ(triton.source, Source::kAssumed);
  const WorkPrice dropout = price({.name = "triton_poi_fused_native_dropout_0",
                                   .shapes = {{1 << 28}},
                                   .bytes = 1 << 30,
                                   .bytes_source = BytesSource::kParameters});
  EXPECT_NEAR(dropout.seconds - launch(), (1 << 28) / 3.1e11, 1e-9) << "by its elements";
  const WorkPrice unknown = price({.name = "extension", .bytes_source = BytesSource::kNothing});
  EXPECT_FALSE(unknown.is_known);
  EXPECT_DOUBLE_EQ(unknown.seconds, launch());
}

TEST_F(WorkPriceTest, OfAttentionIsThatOfItsShape) {
  const TraceWork work{.name = "pytorch_flash::flash_fwd_kernel",
                       .operator_name = "aten::_flash_attention_forward",
                       .dtype = "BFloat16",
                       .shapes = {{1, 8192, 32, 128}, {1, 8192, 8, 128}, {1, 8192, 8, 128}},
                       .flops = 5.5e11,
                       .bytes = 1000,
                       .bytes_source = BytesSource::kOperator};
  const WorkPrice attention = price(work);
  EXPECT_EQ(attention.work_class, WorkClass::kAttention);
  EXPECT_NEAR(5.5e11 / attention.seconds, 319e12, 5e12);
  TraceWork fp32 = work;
  fp32.dtype = "Float";
  EXPECT_NEAR((price(fp32).seconds - launch()) / (attention.seconds - launch()), 6, 0.01);
}

// Measured on an H200, 4 layers of Llama-3 8B with 8,192 tokens: 0.91 and 2.96 ms (torch 2.11,
// cuDNN 9.19), with cuDNN's small kernels around it. Of the GPUs where it was not measured, the
// rates of plans' fused attention hold.
TEST_F(WorkPriceTest, OfCudnnsAttentionIsItsOwn) {
  const std::vector<int64_t> query = {1, 32, 8192, 128}, key = {1, 8, 8192, 128};
  const double flops = 2.0 * 8192 * 8192 * 32 * 128;
  TraceWork work{.name = "cudnn_generated_fort_native_sdpa_flash_fprop",
                 .operator_name = "aten::_scaled_dot_product_cudnn_attention",
                 .dtype = "BFloat16",
                 .shapes = {query, key, key},
                 .flops = flops,
                 .bytes = 1000,
                 .bytes_source = BytesSource::kOperator};
  EXPECT_NEAR(price(work).seconds / 0.91e-3, 1, 0.05);
  const GpuRates of_blackwell(*find_gpu("b200-sxm"), nullptr, {}, 1, Priced::kKernels);
  const AttentionShape shape{
      .heads = 32, .sequence = 8192, .operator_name = "aten::_scaled_dot_product_cudnn_attention"};
  EXPECT_DOUBLE_EQ(
      of_blackwell.attention_flops_per_second(shape),
      attention_rate(*find_gpu("b200-sxm"), shape, {Attention::kFused}).flops_per_second);

  work.operator_name = "aten::_scaled_dot_product_cudnn_attention_backward";
  work.shapes = {query, query, key, key};
  work.flops = 2.5 * flops;
  EXPECT_NEAR(price(work).seconds / 2.96e-3, 1, 0.15);
}

// A chunk of a ring that is not the rank's own: no mask.
TEST_F(WorkPriceTest, OfAttentionWithoutAMaskHasARateOfItsOwn) {
  const double flops = 4.0 * 8192 * 8192 * 32 * 128;
  const WorkPrice attention =
      price({.name = "flash_fwd_kernel",
             .operator_name = "aten::_flash_attention_forward",
             .dtype = "BFloat16",
             .shapes = {{1, 8192, 32, 128}, {1, 8192, 32, 128}, {1, 8192, 32, 128}},
             .flops = flops,
             .bytes = 1000,
             .bytes_source = BytesSource::kOperator});
  EXPECT_NEAR(flops / (attention.seconds - launch()), 353e12, 4e12);
}

TEST_F(WorkPriceTest, OfNcclIsThatOfItsCommunicatorsRanks) {
  const WorkPrice gather = price({.kind = WorkKind::kCollective,
                                  .name = "all_gather",
                                  .dtype = "BFloat16",
                                  .bytes = 1 << 28,
                                  .communicator = 0});
  const CollectiveCall call{
      .kind = CollectiveKind::kAllGather, .group_size = 16, .dtype = "BFloat16", .bytes = 1 << 28};
  const GroupPlacement placement{.ranks = 16, .ranks_per_domain = 8};
  EXPECT_DOUBLE_EQ(gather.seconds, collective_time(call, placement, fabric_).seconds);
  EXPECT_EQ(gather.work_class, WorkClass::kCommunication);
}

TEST_F(WorkPriceTest, OfMessagesIsThatOfTheSlowerDirection) {
  const auto exchange = [&](int64_t to, int64_t from) {
    return price({.kind = WorkKind::kMessages,
                  .name = "messages",
                  .communicator = 0,
                  .messages = {{.is_send = true, .bytes = 1 << 24, .peer = to},
                               {.is_send = false, .bytes = 1 << 24, .peer = from}}})
        .seconds;
  };
  EXPECT_DOUBLE_EQ(exchange(1, 7),
                   message_seconds(1 << 24, Distance::kInDomain, fabric_) + launch());
  EXPECT_DOUBLE_EQ(exchange(1, 15), message_seconds(1 << 24, Distance::kInPod, fabric_) + launch());
}

TEST_F(WorkPriceTest, SaysWhatAWorkOccupies) {
  EXPECT_DOUBLE_EQ(price(product("BFloat16")).occupancy.multiprocessors, 1);
  TraceWork small = product("BFloat16");
  small.shapes = {{1, 256, 256, 256}};
  EXPECT_NEAR(price(small).occupancy.multiprocessors, 4.0 / 132, 1e-9);
  const TraceWork kernel{.name = "elementwise",
                         .operator_name = "aten::add",
                         .bytes = 1 << 20,
                         .threads = 2048 * 33,
                         .bytes_source = BytesSource::kOperator};
  EXPECT_NEAR(price(kernel).occupancy.multiprocessors, 0.25, 1e-9);
  EXPECT_GT(price(kernel).occupancy.memory, 0.05);
  EXPECT_LT(price(kernel).occupancy.memory, 0.5);
  const WorkPrice gather_price = price({.kind = WorkKind::kCollective,
                                        .name = "all_gather",
                                        .dtype = "BFloat16",
                                        .bytes = 1 << 28,
                                        .communicator = 0});
  const Occupancy gather = gather_price.occupancy;
  const double gather_seconds = gather_price.seconds;
  EXPECT_GT(gather.multiprocessors, 0.05);
  EXPECT_LT(gather.multiprocessors, 0.3);
  // 2 x 15/16 of 268 MB in the memory, of 2.97 TB/s.
  const double seconds = 2 * 15.0 / 16 * (1 << 28) / 2.97e12;
  EXPECT_NEAR(gather.memory, seconds / gather_seconds, 1e-3);
  EXPECT_GT(gather.ports.nic, 0.2);
  const Occupancy message = price({.kind = WorkKind::kMessages,
                                   .name = "messages",
                                   .communicator = 0,
                                   .messages = {{.is_send = true, .bytes = 1 << 28, .peer = 1}}})
                                .occupancy;
  EXPECT_GT(message.ports.link, 0.9);
  EXPECT_EQ(message.ports.nic, 0);
}

TEST_F(WorkPriceTest, OfCopiesIsThatOfTheirLink) {
  const WorkPrice down = price({.kind = WorkKind::kCopy, .name = kHostToDevice, .bytes = 1 << 30});
  EXPECT_EQ(down.work_class, WorkClass::kCopies);
  EXPECT_GT(down.seconds, 10e-3);
  const WorkPrice inside =
      price({.kind = WorkKind::kCopy, .name = kDeviceToDevice, .bytes = 1 << 30});
  EXPECT_EQ(inside.work_class, WorkClass::kMemoryBound);
  EXPECT_LT(inside.seconds, 1e-3);
}

}  // namespace
}  // namespace estimator
