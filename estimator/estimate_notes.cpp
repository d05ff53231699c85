#include "estimator/estimate_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/units.h"

namespace estimator {
namespace {

void note_links(std::vector<std::string>& notes,
                const Plan& plan,
                const Gpu& gpu,
                const Fabric& fabric) {
  if (plan.world_size() == 1) return;
  if (fabric.intra.id == gpu.default_intra_link) {
    notes.push_back(
        fmt::format("link inside a machine: {}, the usual one of {}", fabric.intra.id, gpu.id));
  }
  if (plan.world_size() > fabric.island_gpus) {
    if (fabric.inter.id == gpu.default_inter_link) {
      notes.push_back(fmt::format("NIC: {}, the usual one of {}", fabric.inter.id, gpu.id));
    }
    notes.push_back(
        fmt::format("NICs for each GPU: {:g}, shared fairly; a network without oversubscription",
                    fabric.nics_per_gpu));
  }
  notes.push_back(
      "NCCL opens the channels and buffers of the published graphs (NVIDIA/nccl issues 1197, "
      "1685)");
  notes.push_back(
      "collectives take 15 us (NVLink, PCIe), 20 us (InfiniBand, RoCE, sockets) or 55 us (EFA) "
      "more than NCCL's own model says");
}

void note_profiles(std::vector<std::string>& notes,
                   const Gpu& gpu,
                   const std::vector<const RankProfile*>& profiles) {
  const auto any = [&](auto predicate) {
    return std::any_of(
        profiles.begin(), profiles.end(), [&](const RankProfile* p) { return predicate(*p); });
  };
  if (any([](const RankProfile& p) { return p.micro_batches.executed < p.micro_batches.total; })) {
    notes.push_back(
        "memory repeats from micro-batch to micro-batch: ranks ran fewer of them than the plan "
        "has");
  }
  if (any([](const RankProfile& p) { return p.limit_lifted; })) {
    notes.push_back(
        "ranks that ran out of memory ran again without the limit: their peaks are what they would "
        "need");
  }
  for (const RankProfile* profile : profiles) {
    if (profile->device.kind == DeviceKind::kCpu) {
      notes.push_back(
          fmt::format("rank {} ran on a CPU: its kernels and their memory are not those of {}",
                      profile->rank,
                      gpu.id));
    } else if (profile->device.name != gpu.cuda_name) {
      notes.push_back(fmt::format(
          "rank {} ran on {} and stands for {}", profile->rank, profile->device.name, gpu.id));
    }
  }
}

}  // namespace

std::vector<std::string> assumptions_of(const Plan& plan,
                                        const Gpu& gpu,
                                        const Fabric& fabric,
                                        const std::vector<const RankProfile*>& profiles) {
  std::vector<std::string> notes;
  notes.push_back(fmt::format(
      "CUDA context of {}: {} ({})", gpu.id, format_gib(gpu.context_bytes), gpu.context_source));
  note_links(notes, plan, gpu, fabric);
  note_profiles(notes, gpu, profiles);
  return notes;
}

std::vector<std::string> gaps_of_the_model() {
  return {
      "stragglers, clock throttling and failures",
      "data loading, logging, evaluation and checkpoints",
      "compute slowed by communication that runs beside it (published: 2-40 %)",
      "overlap of tensor-parallel communication with matrix products",
      "congestion and oversubscription of the network, and reductions in its switches (SHARP)",
      "kernels fused beyond those of the shard, and tuned kernels for single shapes",
      "fragmentation that builds up after the second iteration",
      "memory of cuDNN plans, of other libraries, and of other processes on the GPU",
  };
}

}  // namespace estimator
