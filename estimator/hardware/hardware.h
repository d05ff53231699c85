// GPUs and links: what the database says about them, with sources.
//
// Peak rates are for dense matrices, memory is what CUDA reports to a program, and bandwidths are
// for one direction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/dtype.h"
#include "estimator/base/enum_names.h"
#include "estimator/base/option.h"
#include "estimator/base/tagged.h"

namespace estimator {

/// The first compute capability of a generation.
inline constexpr int kAmpere = 8, kHopper = 9, kBlackwell = 10;

struct GpuPrice {
  std::string provider;
  double usd_per_gpu_hour = 0;
  std::string date;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, GpuPrice& price) {
  visit("provider", price.provider, "who asks it");
  visit("usd_per_gpu_hour", price.usd_per_gpu_hour, "price of one GPU for one hour");
  visit("date", price.date, "when it was read");
  visit("source", price.source, "where it was read");
}

/// Dense FLOP per second by type; a type is empty when the GPU has no unit for it.
struct PeakFlops {
  std::optional<double> fp32, tf32, bf16, fp16, fp8, fp4, fp64, int8;
};
template <class Visitor>
void visit_fields(Visitor& visit, PeakFlops& peak) {
  visit("fp32", peak.fp32, "FP32 without tensor cores");
  visit("tf32", peak.tf32, "TF32");
  visit("bf16", peak.bf16, "BF16, FP32 accumulation");
  visit("fp16", peak.fp16, "FP16, FP32 accumulation");
  visit("fp8", peak.fp8, "FP8");
  visit("fp4", peak.fp4, "FP4, with scales of blocks (NVFP4)");
  visit("fp64", peak.fp64, "FP64, with tensor cores where they have it");
  visit("int8", peak.int8, "INT8, additions and multiplications");
}

struct Gpu {
  std::string id;  ///< "h100-sxm"
  std::vector<std::string> aliases;
  std::string cuda_name;           ///< as CUDA reports it: "NVIDIA H100 80GB HBM3"
  std::string architecture;        ///< "Hopper"
  std::string compute_capability;  ///< "9.0"
  int64_t multiprocessors = 0;
  int64_t memory_bytes = 0;  ///< cudaDeviceProp::totalGlobalMem
  int64_t l2_bytes = 0;      ///< cudaDeviceProp::l2CacheSize
  std::string l2_source;
  double memory_bandwidth_bytes_per_second = 0;
  PeakFlops peak_flops_per_second;
  std::string default_intra_link;
  std::string default_inter_link;
  int64_t nvlink_domain_gpus = 1;  ///< GPUs that reach each other over NVLink; 1: none
  int64_t machine_gpus = 8;        ///< of the usual machine
  bool nics_behind_cpu = false;    ///< the GPU reaches its NICs over NVLink-C2C and the CPU's PCIe
  int64_t context_bytes = 0;       ///< CUDA context and modules, outside the allocator
  std::string context_source;
  std::vector<GpuPrice> prices;
  /// The GPU of which kernels reach the same shares of the peaks (assumed), where nobody published
  /// its own.
  std::optional<std::string> rates_as;
  std::vector<std::string> sources;
  std::string note;

  /// In the tables of kernels' rates.
  const std::string& rates_id() const { return rates_as ? *rates_as : id; }
  bool supports(Dtype dtype) const;
  /// Dense peak rate for the plan's type; for fp32 that is the FP32 rate, not the one of TF32.
  /// Throws UserError when the GPU has no rate for the type.
  double peak_flops(Dtype dtype) const;
  /// The compute capability as a number.
  double capability() const { return std::stod(compute_capability); }
  /// Its part before the point.
  int major_capability() const { return std::stoi(compute_capability); }
};
template <class Visitor>
void visit_fields(Visitor& visit, Gpu& gpu) {
  visit("id", gpu.id, "the name to type");
  visit("aliases", gpu.aliases, "other names");
  visit("cuda_name", gpu.cuda_name, "the name that CUDA reports");
  visit("architecture", gpu.architecture, "generation");
  visit("compute_capability", gpu.compute_capability, "major.minor");
  visit("multiprocessors", gpu.multiprocessors, "SMs");
  visit("memory_bytes", gpu.memory_bytes, "memory as CUDA reports it");
  visit("l2_bytes", gpu.l2_bytes, "L2 cache as CUDA reports it");
  visit("l2_source", gpu.l2_source, "where l2_bytes comes from");
  visit("memory_bandwidth_bytes_per_second",
        gpu.memory_bandwidth_bytes_per_second,
        "HBM or GDDR, peak");
  visit("peak_flops_per_second", gpu.peak_flops_per_second, "dense peak rates");
  visit("default_intra_link", gpu.default_intra_link, "link inside a machine");
  visit("default_inter_link",
        gpu.default_inter_link,
        "NIC that usually stands beside this GPU (assumed)");
  visit("nvlink_domain_gpus", gpu.nvlink_domain_gpus, "GPUs in one NVLink domain");
  visit("machine_gpus", gpu.machine_gpus, "GPUs of the usual machine");
  visit("nics_behind_cpu", gpu.nics_behind_cpu, "the NICs hang on the CPU (C2C)");
  visit("context_bytes", gpu.context_bytes, "CUDA context outside the allocator");
  visit("context_source", gpu.context_source, "where context_bytes comes from");
  visit("prices", gpu.prices, "dated prices");
  visit("rates_as", gpu.rates_as, "GPU whose shares of the peaks are assumed");
  visit("sources", gpu.sources, "where the numbers come from");
  visit("note", gpu.note, "what to be careful about");
}

/// Of a rate that is published for gpu.rates_id().
Source source_of_rate(const Gpu& gpu);
std::string note_of_rate(const Gpu& gpu, const std::string& note);

struct Link {
  std::string id;                       ///< "nvlink4", "ib-ndr-400"
  std::string kind;                     ///< "nvlink", "pcie", "ib", "opa", "roce", "efa", "sockets"
  double nominal_bytes_per_second = 0;  ///< of one GPU's port or one NIC
  double achieved_bytes_per_second = 0;  ///< what NCCL's ring moves through it
  double nccl_bytes_per_second = 0;      ///< bandwidth that NCCL's topology code assumes for it
  std::optional<double>
      nvls_bytes_per_second;    ///< all-reduce bus bandwidth with in-switch reduction
  double latency_seconds = 0;   ///< of one hop, NCCL's Simple protocol
  double nics_per_gpu = 1;      ///< NICs of this kind that usually stand beside one GPU
  bool spans_machines = false;  ///< its switches join several machines into one NVLink domain
  std::vector<std::string> sources;
  std::string note;
};
template <class Visitor>
void visit_fields(Visitor& visit, Link& link) {
  visit("id", link.id, "the name to type");
  visit("kind", link.kind, "nvlink, pcie, ib, opa, roce, efa or sockets");
  visit("nominal_bytes_per_second", link.nominal_bytes_per_second, "of one port, one direction");
  visit(
      "achieved_bytes_per_second", link.achieved_bytes_per_second, "what a ring moves through it");
  visit("nccl_bytes_per_second",
        link.nccl_bytes_per_second,
        "bandwidth that NCCL's topology code assumes (topo.h @5067397)");
  visit("nvls_bytes_per_second", link.nvls_bytes_per_second, "all-reduce bus bandwidth with NVLS");
  visit("latency_seconds", link.latency_seconds, "one hop");
  visit("nics_per_gpu", link.nics_per_gpu, "NICs that usually stand beside one GPU");
  visit("spans_machines", link.spans_machines, "joins machines into one domain");
  visit("sources", link.sources, "where the numbers come from");
  visit("note", link.note, "what to be careful about");
}

const std::vector<Gpu>& gpus();
const std::vector<Link>& links();

/// Finds a GPU by id, alias or CUDA's name ("NVIDIA H100 80GB HBM3", or the same without "NVIDIA");
/// null when there is none.
const Gpu* find_gpu(const std::string& name);

/// The GPU on which a row of a data file was measured. Throws std::logic_error when there is none.
const Gpu& measured_gpu(const std::string& id);
/// Multiprocessors of `gpu` over those of the GPU on which a row was measured.
double multiprocessors_over(const Gpu& gpu, const std::string& measured_on);

/// Finds a link by id; null when there is none.
const Link* find_link(const std::string& name);

/// Every id and alias of every GPU.
std::vector<std::string> gpu_names();

/// The help text for a name that find_gpu() or find_link() does not find. An empty name means that
/// the user gave none.
std::string gpu_help(const std::string& name);
std::string link_help(const std::string& name);

}  // namespace estimator
