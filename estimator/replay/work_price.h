// What each work of a trace costs when it runs alone: the price list of the replay.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "estimator/base/tagged.h"
#include "estimator/communication/fabric.h"
#include "estimator/communication/port_use.h"
#include "estimator/compute/gpu_rates.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

enum class WorkClass {
  kProducts,       ///< matrix products, at the rate of their shape
  kAttention,      ///< fused attention, at the rate of its shape
  kMemoryBound,    ///< everything else on the GPU, at the memory's rate
  kCopies,         ///< between host and GPU
  kCommunication,  ///< NCCL, and what goes to and from mapped memory of other ranks
};
constexpr std::array<EnumName<WorkClass>, 5> enum_names(WorkClass) {
  return {{{WorkClass::kProducts, "matrix products"},
           {WorkClass::kAttention, "attention"},
           {WorkClass::kMemoryBound, "memory-bound kernels"},
           {WorkClass::kCopies, "copies to and from the host"},
           {WorkClass::kCommunication, "communication"}}};
}

/// What a work takes of its GPU while it runs, as shares (0 to 1).
struct Occupancy {
  double multiprocessors = 0;
  double memory = 0;           ///< of the bandwidth
  bool is_persistent = false;  ///< see has_persistent_products()
  PortUse ports;
  bool operator==(const Occupancy&) const = default;
};

struct WorkPrice {
  double seconds = 0;
  WorkClass work_class = WorkClass::kMemoryBound;
  Occupancy occupancy = {};
  double joules = 0;  ///< at these rates, beyond what the board always needs; 0: not known
  Source source = Source::kComputed;
  /// False if nothing but its launch is known: neither bytes nor FLOPs.
  bool is_known = true;
  bool operator==(const WorkPrice&) const = default;
};

/// Whether it is a product or attention.
inline bool is_bound_by_arithmetic(const WorkPrice& price) {
  return price.work_class == WorkClass::kProducts || price.work_class == WorkClass::kAttention;
}

/// Whether products on such a GPU launch one block for each multiprocessor and give each its tiles
/// beforehand, as cuBLAS does from Hopper on (pytorch/pytorch pull request 144974; NVIDIA developer
/// forum 337991: 132 blocks on an H100).
bool has_persistent_products(const Gpu& gpu);

/// The price of a collective of NCCL among the members of `group`.
WorkPrice collective_price(const CollectiveCall& call,
                           const RankGroup& group,
                           const GpuRates& rates,
                           const Fabric& fabric);

/// The energy of a work with this price at these rates, beyond what the board always needs. What
/// waits for memory, and NCCL, needs it in proportion to the bandwidth that it takes (assumed).
/// `dtype` is that of the operands, as PyTorch names it; see GpuRates::product_speed().
double joules_of(const WorkPrice& price,
                 const std::string& dtype,
                 double flops,
                 const GpuRates& rates,
                 double product_speed = 1);

/// The share of the memory's bandwidth that a work needs which moves `bytes` in `seconds`.
double share_of_memory(double bytes, double seconds, const GpuRates& rates);

/// The price of a work.
///   products    FLOPs over the rate of their shape and type, or their matrices (of a convolution:
///               its tensors) over the memory's rate, if that takes longer. 8 and 4 bits have a
///               rate for each way of scaling; TF32, FP64 and INT8 reach the share of their own
///               peak that 16-bit elements reach of theirs (assumed). A complex product is four
///               real ones.
///   attention   as operator_price() prices the operator
///   kernels     bytes over the memory's rate; copies within the device too
///   host        bytes over the rate of the link to the host
///   collectives collective_time(); messages by message_time.h
///   mapped memory of other ranks: the bytes that pass the GPU's link, at the rate that a ring
///               reaches on it; a kernel that also moves more of its own memory takes as long as
///               that takes. A signal takes a hop of NCCL's LL protocol, which polls a flag too. At
///               barriers all ranks arrive together.
/// NCCL uses the memory too. For each byte that a rank of a ring sends, it reads one and writes the
/// one that it receives; where it reduces, it reads one more, so half of an all-reduce does.
///
/// A kernel occupies as many multiprocessors as its threads fill, a product as its tiles do, and
/// NCCL one for each channel. Kernels that are bound by arithmetic take rates.slowdown() times as
/// long. `communicators` are those of the program; the work tells its place among them.
WorkPrice work_price(const TraceWork& work,
                     const std::vector<CommunicatorRecord>& communicators,
                     const GpuRates& rates,
                     const Fabric& fabric);

/// The prices of all works of the rank's trace, in their order. `profile` must have a trace and a
/// program.
std::vector<WorkPrice> work_prices(const RankProfile& profile,
                                   const GpuRates& rates,
                                   const Fabric& fabric);

}  // namespace estimator
