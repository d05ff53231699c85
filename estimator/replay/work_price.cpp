#include "estimator/replay/work_price.h"

#include <algorithm>
#include <string_view>

#include "estimator/base/contains.h"
#include "estimator/base/units.h"
#include "estimator/communication/communication_time.h"
#include "estimator/communication/message_time.h"
#include "estimator/compute/attention_extras.h"
#include "estimator/compute/compiled_kernel.h"
#include "estimator/compute/compute_time.h"
#include "estimator/compute/convolution_rate.h"
#include "estimator/compute/host_rates.h"
#include "estimator/compute/kernel_price.h"
#include "estimator/replay/work_bytes.h"

namespace estimator {
namespace {

/// By cublasLtMatmulMatrixScale_t; matrices in 4 bits have one way.
ProductScaling scaling_of(const TraceWork& work) {
  constexpr int64_t kVector32 = 2, kOuterVector = 3;
  if (work.dtype.starts_with("Float4")) return ProductScaling::kNvfp4;
  if (work.scale_mode == 0) return ProductScaling::kTensor;
  if (work.scale_mode == kOuterVector) return ProductScaling::kRow;
  return work.scale_mode == kVector32 ? ProductScaling::kMicro : ProductScaling::kBlock;
}

/// Of a kernel with which PyTorch convolves each channel with its own filter, from the sizes of its
/// operator's inputs: x and the filters, or the gradient of y, x and the filters.
std::optional<ConvolutionShape> depthwise_of(const TraceWork& work) {
  const std::string_view name = work.name;
  if (name.find("conv_depthwise") == name.npos || work.shapes.size() < 2) return std::nullopt;
  const bool is_forward = work.operator_name != "aten::convolution_backward";
  const std::size_t filter = is_forward ? 1 : 2;
  if (filter >= work.shapes.size()) return std::nullopt;
  const auto elements = [&](std::size_t input, std::size_t first_dim) {
    double product = 1;
    const std::vector<int64_t>& sizes = work.shapes[input];
    for (std::size_t i = first_dim; i < sizes.size(); ++i) product *= static_cast<double>(sizes[i]);
    return product;
  };
  const bool is_of_filter = name.find("grad_weight") != name.npos;
  return ConvolutionShape{
      .pass = is_forward     ? ConvolutionPass::kForward
              : is_of_filter ? ConvolutionPass::kBackwardFilter
                             : ConvolutionPass::kBackwardData,
      .is_fp32 = bytes_of_element(work.dtype) > 2,
      .is_pytorchs = true,
      .groups = work.shapes[filter].empty() ? 1 : work.shapes[filter][0],
      .window = static_cast<int64_t>(elements(filter, 2)),
      .inputs = elements(is_forward ? 0 : 1, 0),
      // a thread for each
      .outputs = is_forward ? static_cast<double>(work.threads) : elements(0, 0)};
}

/// That a member of a ring reads and writes.
double memory_bytes_of(const CollectiveCall& call) {
  const auto ranks = static_cast<double>(call.group_size);
  const bool is_reduced_and_gathered = call.kind == CollectiveKind::kAllReduce;
  const double sent =
      (is_reduced_and_gathered ? 2 : 1) * static_cast<double>(call.bytes) * (ranks - 1) / ranks;
  const double read_for_byte_sent = is_reduced_and_gathered                       ? 1.5
                                    : call.kind == CollectiveKind::kReduceScatter ? 2
                                                                                  : 1;
  return sent * (read_for_byte_sent + 1);
}

class PriceList {
 public:
  PriceList(const std::vector<CommunicatorRecord>& communicators,
            const GpuRates& rates,
            const Fabric& fabric)
      : communicators_(communicators), rates_(rates), fabric_(fabric) {}

  WorkPrice price(const TraceWork& work) const {
    WorkPrice price = price_alone(work);
    const bool is_of_compute = price.work_class == WorkClass::kProducts ||
                               price.work_class == WorkClass::kAttention ||
                               price.work_class == WorkClass::kMemoryBound;
    if (is_of_compute) price.occupancy.multiprocessors = share_of_multiprocessors(work);
    price.occupancy.memory = share_of_memory(memory_bytes(work), price.seconds, rates_);
    price.occupancy.is_persistent =
        price.work_class == WorkClass::kProducts && has_persistent_products(rates_.gpu());
    price.joules = joules_of(price, work.uses_tf32 ? "TF32" : work.dtype, work.flops, rates_);
    return price;
  }

 private:
  /// A multiprocessor holds 2,048 threads, or one tile of 128 x 128 of a product.
  double share_of_multiprocessors(const TraceWork& work) const {
    constexpr int64_t kThreads = 2048, kTile = 128;
    const auto processors = static_cast<double>(rates_.gpu().multiprocessors);
    if (work.kind == WorkKind::kProduct) {
      const std::vector<int64_t>& sizes = work.shapes.front();
      const double tiles = static_cast<double>(sizes[0]) *
                           static_cast<double>(divide_up(sizes[1], kTile)) *
                           static_cast<double>(divide_up(sizes[2], kTile));
      return std::min(1.0, tiles / processors);
    }
    if (work.threads == 0) return 1;  // a copy or fill within the device
    return std::min(1.0, static_cast<double>(work.threads) / kThreads / processors);
  }

  /// That a work reads and writes.
  double memory_bytes(const TraceWork& work) const {
    const auto bytes = static_cast<double>(work.bytes);
    switch (work.kind) {
      case WorkKind::kProduct:
        return moved_bytes(work);
      case WorkKind::kCopy:
        return contains({kDeviceToDevice, kPeerToPeer}, work.name) ? 2 * bytes : bytes;
      case WorkKind::kCollective:
        return memory_bytes_of(call_of(work));
      case WorkKind::kKernel:
      case WorkKind::kFill:
      case WorkKind::kMessages:  // its sends are read, its receives are written
      case WorkKind::kSignal:
        return bytes;
    }
    return bytes;
  }

  CollectiveCall call_of(const TraceWork& work) const {
    return {.kind = *value_named<CollectiveKind>(work.name),
            .group_size = communicator(work).size,
            .dtype = work.dtype,
            .bytes = work.bytes};
  }

  WorkPrice price_alone(const TraceWork& work) const {
    switch (work.kind) {
      case WorkKind::kKernel:
        return work.peer_bytes > 0 ? kernel_over_link(work) : kernel(work);
      case WorkKind::kProduct:
        if (const auto pass = convolution_pass(work.name)) return convolution(work, *pass);
        return product(work);
      case WorkKind::kCopy:
        return copy(work);
      case WorkKind::kFill:
        return {.seconds = memory_seconds(static_cast<double>(work.bytes))};
      case WorkKind::kCollective:
        return collective_price(call_of(work), group_of(communicator(work)), rates_, fabric_);
      case WorkKind::kMessages:
        return messages(work);
      case WorkKind::kSignal:
        return {.seconds = signal_seconds(fabric_) + rates_.launch().kernel_seconds,
                .work_class = WorkClass::kCommunication,
                .source = Source::kAssumed};
    }
    return {};
  }

  /// `share`: of the rate of streams.
  double memory_seconds(double bytes, double share = 1) const {
    return (bytes > 0 ? bytes / rates_.memory_bytes_per_second(bytes) / share : 0) +
           rates_.launch().kernel_seconds;
  }

  WorkPrice kernel_without_operator(const TraceWork& work) const {
    const CompiledKernelRate rate = compiled_kernel_rate(work.name, rates_.gpu());
    double seconds = memory_seconds(static_cast<double>(work.bytes), rate.memory_share);
    if (!work.shapes.empty()) {
      const double busy = compiled_kernel_seconds(rate, work.shapes.front());
      seconds = std::max(seconds, busy * rates_.slowdown() + rates_.launch().kernel_seconds);
    }
    return {.seconds = seconds,
            .source = Source::kAssumed,
            .is_known = work.bytes_source != BytesSource::kNothing};
  }

  WorkPrice kernel(const TraceWork& work) const {
    if (work.bytes_source != BytesSource::kOperator) return kernel_without_operator(work);
    if (const auto shape = depthwise_of(work)) return at_convolution_rate(work, *shape, {});
    const OperatorRecord record{.name = work.operator_name,
                                .shapes = work.shapes,
                                .dtype = work.dtype,
                                .other_dtype = work.other_dtype,
                                .is_strided = work.is_strided,
                                .is_misaligned = work.is_misaligned,
                                .flops = work.flops,
                                .bytes = static_cast<double>(work.bytes)};
    if (is_matmul(record) && is_scaled_type(work.dtype)) return scaled_kernel(work, record);
    const WorkClass work_class = work.flops == 0        ? WorkClass::kMemoryBound
                                 : is_attention(record) ? WorkClass::kAttention
                                 : is_matmul(record)    ? WorkClass::kProducts
                                                        : WorkClass::kMemoryBound;
    const MemoryBound bound = memory_bound(record, std::nullopt, rates_.gpu(), work.name);
    const OperatorPrice price =
        operator_price(as_batch_of_groups(record), rates_, Dtype::kBf16, bound.memory_share);
    const double least = bound.least_seconds * rates_.slowdown() + rates_.launch().kernel_seconds;
    const double seconds = std::max(price.seconds, least);
    const double slowdown =
        work_class == WorkClass::kAttention
            ? attention_slowdown(record.name, {.mask = work.has_mask, .dropout = work.has_dropout})
            : 1;
    return {.seconds = seconds * slowdown, .work_class = work_class};
  }

  /// A product is bound by its FLOPs or by its bytes. A `rate` of 0 is not known.
  WorkPrice product_price(double flops, double rate, double bytes, Source source) const {
    const double compute = rate > 0 ? flops / rate * rates_.slowdown() : 0;
    return {.seconds = std::max(compute + rates_.launch().kernel_seconds, memory_seconds(bytes)),
            .work_class = WorkClass::kProducts,
            .source = source,
            .is_known = rate > 0};
  }

  /// cuBLAS's kernel where one scale stands for a whole operand; CUTLASS's for scales of rows and
  /// for groups. Groups are priced as a usual shape.
  WorkPrice scaled_kernel(const TraceWork& work, const OperatorRecord& record) const {
    const ScaledProduct product = scaled_product(record);
    const double rate = rates_.scaled_flops_per_second(product.shape, product.scaling);
    return product_price(work.flops, rate, static_cast<double>(work.bytes), Source::kAssumed);
  }

  /// FLOP per second of a product of this type and shape; 0 if nothing is known of the type.
  double product_rate(const TraceWork& work, const MatmulShape& shape) const {
    const PeakFlops& peak = rates_.gpu().peak_flops_per_second;
    if (work.dtype == "BFloat16") {
      return rates_.matmul_flops_per_second(
          shape, Dtype::kBf16, work.accumulates && work.result_dtype == "Float");
    }
    if (work.dtype == "Half") return rates_.matmul_flops_per_second(shape, Dtype::kFp16, false);
    if (is_scaled_type(work.dtype)) {
      return rates_.scaled_flops_per_second(shape, scaling_of(work));
    }
    if (contains({"Double", "ComplexDouble"}, work.dtype))
      return rates_.fp64_flops_per_second(shape);
    if (work.dtype == "Char") {
      return rates_.flops_per_second_as_bf16(peak.int8, shape) * int8_share(rates_.gpu());
    }
    if (!contains({"Float", "ComplexFloat"}, work.dtype)) return 0;
    return work.uses_tf32 ? rates_.flops_per_second_as_bf16(peak.tf32, shape)
                          : rates_.matmul_flops_per_second(shape, Dtype::kFp32, false);
  }

  /// Kernels of FP64 and of complex numbers load single elements.
  static MatmulShape product_shape(const TraceWork& work) {
    constexpr int64_t kWidest = 4, kPair = 4;
    const std::vector<int64_t>& sizes = work.shapes.front();
    return {.batch = std::max<int64_t>(1, sizes[0]),
            .m = std::max<int64_t>(1, sizes[1]),
            .n = std::max<int64_t>(1, sizes[2]),
            .k = std::max<int64_t>(1, sizes[3]),
            .is_misaligned = work.is_misaligned && bytes_of_element(work.dtype) <= kWidest,
            .is_in_pairs = work.alignment >= kPair};
  }

  /// Few channels, groups and single channels are not bound by the product's rate.
  WorkPrice convolution(const TraceWork& work, ConvolutionPass pass) const {
    const std::vector<int64_t>& sizes = work.shapes.at(1);
    const bool is_fp32 = bytes_of_element(work.dtype) > 2;
    const ConvolutionShape shape{.pass = pass,
                                 .is_fp32 = is_fp32,
                                 .has_tensor_cores = !is_fp32 || work.uses_tf32,
                                 .groups = work.shapes[0][0],
                                 .in = sizes.at(0),
                                 .out = sizes.at(1),
                                 .window = sizes.at(2),
                                 .inputs = static_cast<double>(sizes.at(3)),
                                 .outputs = static_cast<double>(sizes.at(4))};
    return at_convolution_rate(work, shape, product(work));
  }

  /// `whole`: the price as the product.
  WorkPrice at_convolution_rate(const TraceWork& work,
                                const ConvolutionShape& shape,
                                WorkPrice whole) const {
    const ConvolutionRate rate = convolution_rate(shape, rates_.gpu());
    if (rate.multiply_adds_per_second == 0) {
      whole.seconds = whole.seconds * rate.slowdown + rate.extra_seconds;
      return whole;
    }
    const double busy = shape.multiply_adds() / rate.multiply_adds_per_second * rates_.slowdown();
    whole.seconds = std::max(busy + rates_.launch().kernel_seconds,
                             memory_seconds(static_cast<double>(work.bytes), rate.memory_share));
    return whole;
  }

  WorkPrice product(const TraceWork& work) const {
    const MatmulShape shape = product_shape(work);
    const bool is_published =
        work.dtype == "BFloat16" || work.dtype == "Half" ||
        (is_scaled_type(work.dtype) && scaled_rate(rates_.gpu(), scaling_of(work)));
    return product_price(work.flops,
                         product_rate(work, shape),
                         moved_bytes(work),
                         is_published ? Source::kComputed : Source::kAssumed);
  }

  /// Ranks whose memory is mapped are in one domain.
  WorkPrice over_link(int64_t bytes) const {
    const double busy = static_cast<double>(bytes) / fabric_.intra.achieved_bytes_per_second;
    const double seconds = busy + rates_.launch().kernel_seconds;
    return {.seconds = seconds,
            .work_class = WorkClass::kCommunication,
            .occupancy = {.ports = {.link = busy / seconds}},
            .source = Source::kAssumed};
  }

  WorkPrice kernel_over_link(const TraceWork& work) const {
    WorkPrice price = over_link(work.peer_bytes);
    const double seconds = std::max(price.seconds, kernel(work).seconds);
    price.occupancy.ports.link *= price.seconds / seconds;
    price.occupancy.multiprocessors = share_of_multiprocessors(work);
    price.seconds = seconds;
    return price;
  }

  WorkPrice copy(const TraceWork& work) const {
    if (work.name == kPeerToPeer) return over_link(work.bytes);
    if (work.name == kDeviceToDevice) {
      return {.seconds = memory_seconds(2 * static_cast<double>(work.bytes))};
    }
    const HostLink& link = host_link(rates_.gpu().id);
    const bool is_to_device = work.name == kHostToDevice;
    TaggedNumber rate{
        .value = is_to_device ? link.to_device_bytes_per_second : link.to_host_bytes_per_second,
        .source = link.source};
    if (work.is_pageable) {
      const TaggedNumber pageable = pageable_rate(is_to_device);
      if (pageable.value < rate.value) rate = pageable;
    }
    return {
        .seconds = static_cast<double>(work.bytes) / rate.value + rates_.launch().kernel_seconds,
        .work_class = WorkClass::kCopies,
        .source = rate.source};
  }

  const CommunicatorRecord& communicator(const TraceWork& work) const {
    return communicators_.at(static_cast<std::size_t>(work.communicator));
  }

  /// Sends and receives go at the same time. More than a send to each neighbour is an all-to-all.
  WorkPrice messages(const TraceWork& work) const {
    const CommunicatorRecord& record = communicator(work);
    const RankGroup group = group_of(record);
    const int64_t own = group.member(record.rank);
    double seconds[2] = {};
    int64_t bytes[2] = {};
    int64_t peers[2] = {};
    for (const TraceMessage& message : work.messages) {
      if (message.peer == record.rank) continue;  // a copy within the device
      const int way = message.is_send ? 1 : 0;
      seconds[way] += message_seconds(
          message.bytes, fabric_.distance(own, group.member(message.peer)), fabric_);
      bytes[way] += message.bytes;
      ++peers[way];
    }
    constexpr int64_t kNeighbours = 2;
    double slowest = std::max(seconds[0], seconds[1]);
    if (std::max(peers[0], peers[1]) > kNeighbours && record.size > 1) {
      const int64_t others = std::max(bytes[0], bytes[1]);
      const int64_t own_part = others / (record.size - 1);  // it stays, but counts
      slowest = all_to_all_seconds(others + own_part, place(group, fabric_), fabric_);
    }
    return {.seconds = slowest + rates_.launch().kernel_seconds,
            .work_class = WorkClass::kCommunication,
            .occupancy = {.ports = port_use_of(work, group, own, slowest)}};
  }

  /// The ports carry both directions at the same time.
  PortUse port_use_of(const TraceWork& work,
                      const RankGroup& group,
                      int64_t own,
                      double seconds) const {
    PortUse uses[2];
    for (const TraceMessage& message : work.messages) {
      const int64_t peer = group.member(message.peer);
      if (peer == own || seconds == 0) continue;
      const PortUse use = send_port_use(message.bytes, own, peer, seconds, fabric_);
      PortUse& sum = uses[message.is_send ? 1 : 0];
      sum.link += use.link;
      sum.nic += use.nic;
    }
    return {.link = std::min(1.0, std::max(uses[0].link, uses[1].link)),
            .nic = std::min(1.0, std::max(uses[0].nic, uses[1].nic))};
  }

  const std::vector<CommunicatorRecord>& communicators_;
  const GpuRates& rates_;
  const Fabric& fabric_;
};

}  // namespace

bool has_persistent_products(const Gpu& gpu) { return gpu.capability() >= kHopper; }

double joules_of(const WorkPrice& price,
                 const std::string& dtype,
                 double flops,
                 const GpuRates& rates,
                 double product_speed) {
  const BoardPower* const board = rates.power();
  if (board == nullptr) return 0;
  switch (price.work_class) {
    case WorkClass::kProducts:
      return board->product_joules(dtype, flops) * board->energy_share(product_speed);
    case WorkClass::kAttention:
      return board->attention_joules(flops, price.seconds);
    case WorkClass::kMemoryBound:
    case WorkClass::kCopies:
    case WorkClass::kCommunication:
      return board->memory_joules(price.seconds * price.occupancy.memory);
  }
  return 0;
}

double share_of_memory(double bytes, double seconds, const GpuRates& rates) {
  constexpr double kLargeStream = 1e9;
  if (seconds <= 0 || bytes <= 0) return 0;
  return std::min(1.0, bytes / rates.memory_bytes_per_second(kLargeStream) / seconds);
}

WorkPrice collective_price(const CollectiveCall& call,
                           const RankGroup& group,
                           const GpuRates& rates,
                           const Fabric& fabric) {
  const GroupPlacement placement = place(group, fabric);
  const CollectiveTime time = collective_time(call, placement, fabric);
  const auto busy = static_cast<double>(busy_multiprocessors(call, placement, fabric));
  const double seconds = std::max(time.seconds, rates.launch().kernel_seconds);
  return {.seconds = seconds,
          .work_class = WorkClass::kCommunication,
          .occupancy = {.multiprocessors = busy / static_cast<double>(rates.gpu().multiprocessors),
                        .memory = share_of_memory(memory_bytes_of(call), seconds, rates),
                        .ports =
                            time.seconds > 0 ? port_use(call, placement, time, fabric) : PortUse{}},
          .source = time.source};
}

WorkPrice work_price(const TraceWork& work,
                     const std::vector<CommunicatorRecord>& communicators,
                     const GpuRates& rates,
                     const Fabric& fabric) {
  return PriceList(communicators, rates, fabric).price(work);
}

std::vector<WorkPrice> work_prices(const RankProfile& profile,
                                   const GpuRates& rates,
                                   const Fabric& fabric) {
  const PriceList list(profile.program->communicators, rates, fabric);
  std::vector<WorkPrice> prices;
  for (const TraceWork& work : profile.trace->works) prices.push_back(list.price(work));
  return prices;
}

}  // namespace estimator
