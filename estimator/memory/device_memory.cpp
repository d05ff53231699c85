#include "estimator/memory/device_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "estimator/base/units.h"
#include "estimator/memory/framework_communicators.h"

namespace estimator {
namespace {

constexpr int64_t kConnectionBytes = 12 * kMiB;  // 10 MiB to receive, 2 MiB to send
constexpr int64_t kPeerChannelBytes = 14 * kMiB;
constexpr int64_t kFewestNvlsRanks = 3;  // NCCL_NVLS_ENABLE = 2: more than two local GPUs

constexpr int64_t kFirstTensorBytes = 287'047'680;   // pytorch/pytorch pull request 86509, lazy
constexpr int64_t kLateModuleBytes = 300 * kMiB;     // of cuBLASLt, cuDNN, attention kernels
constexpr int64_t kEagerContextBytes = 1573 * kMiB;  // bigscience, A100
constexpr int64_t kEagerLowBytes = 666'632'192;      // pytorch/pytorch pull request 86509, eager

/// A value and what it may be at least and at most.
struct Band {
  int64_t low = 0, value = 0, high = 0;
};

/// Channels that NCCL opens. NVLink: 24 in graph dumps of 8 x A100 and 8 x H100 (issue 1197), 32 to
/// a peer (issue 1685); 16 rings for 8 x 400 Gb (speed grid), two for each NIC. The rest is
/// assumed.
struct Channels {
  Band ring;
  Band peer;
};
Channels channels_of(const GroupPlacement& placement, const Fabric& fabric) {
  if (placement.islands() == 1) {
    return fabric.intra.kind == "nvlink" ? Channels{{16, 24, 32}, {2, 32, 32}}
                                         : Channels{{2, 4, 8}, {2, 2, 4}};
  }
  if (placement.ranks_per_island == 1) return {{2, 4, 16}, {1, 2, 32}};
  const double nics = fabric.nics_per_gpu * static_cast<double>(fabric.island_gpus);
  return {{4, std::clamp<int64_t>(std::llround(2 * nics), 4, 32), 32}, {1, 2, 32}};
}

constexpr int64_t kNvlsChannelBytes = 2 * kMiB;  // 8 steps of 128 KiB, for each local rank, twice
constexpr Band kNvlsChannels = {0, 16, 24};

/// What a rank does in one communicator.
struct Use {
  int64_t group_size = 0;
  bool connects_all = false;  ///< ring and tree, used or not
  bool collectives = false;
  bool all_reduce = false;
  std::set<int64_t> peers;
};

std::map<GroupKind, Use> uses_of(const RankProfile& profile) {
  std::map<GroupKind, Use> uses;
  for (const CollectiveRecord& record : profile.collectives) {
    const CollectiveCall& call = record.call;
    if (call.group_size <= 1) continue;
    Use& use = uses[call.group];
    use.group_size = call.group_size;
    if (call.kind == CollectiveKind::kSend || call.kind == CollectiveKind::kRecv) {
      use.peers.insert(call.peer);
      continue;
    }
    use.collectives = true;
    use.all_reduce |=
        call.kind == CollectiveKind::kAllReduce || call.kind == CollectiveKind::kBarrier;
  }
  return uses;
}

Use use_of(const CommunicatorRecord& communicator) {
  Use use{.group_size = communicator.size};
  for (const ProgramCollective& call : communicator.calls) {
    if (call.kind == to_string(CollectiveKind::kSend) ||
        call.kind == to_string(CollectiveKind::kRecv)) {
      use.peers.insert(call.peer);
      continue;
    }
    use.collectives = true;
    use.all_reduce |= call.kind == to_string(CollectiveKind::kAllReduce);
  }
  return use;
}

MemoryTerm communicator_term(const std::string& group,
                             const Use& use,
                             const GroupPlacement& placement,
                             const Fabric& fabric) {
  const Channels channels = channels_of(placement, fabric);
  MemoryTerm term;
  term.name = fmt::format("NCCL {} group of {}", group, use.group_size);
  term.source = Source::kAssumed;
  const auto add = [&](const Band& count, int64_t bytes_of_one, const std::string& how) {
    term.low_bytes += count.low * bytes_of_one;
    term.value_bytes += count.value * bytes_of_one;
    term.high_bytes += count.high * bytes_of_one;
    term.note += (term.note.empty() ? "" : "; ") + how;
  };
  if (use.collectives || use.connects_all) {
    add(channels.ring,
        kConnectionBytes,
        fmt::format("ring: {} channels x 12 MiB", channels.ring.value));
    if (use.connects_all) {
      add(channels.ring,
          2 * kConnectionBytes * (use.group_size - 1) / use.group_size,
          fmt::format("tree, connected when made: {} channels x 12 MiB x 2 ({} - 1) / {}",
                      channels.ring.value,
                      use.group_size,
                      use.group_size));
    } else if (use.all_reduce && placement.islands() > 1) {
      add(channels.ring,
          2 * kConnectionBytes,
          fmt::format("tree: 2 x {} channels x 12 MiB", channels.ring.value));
    }
    if (fabric.intra.nvls_bytes_per_second && placement.ranks_per_island >= kFewestNvlsRanks) {
      add(kNvlsChannels,
          placement.ranks_per_island * kNvlsChannelBytes,
          fmt::format("NVLS: {} local ranks x 32 MiB", placement.ranks_per_island));
    }
  }
  if (!use.peers.empty()) {
    const auto peers = static_cast<int64_t>(use.peers.size());
    add(channels.peer,
        peers * kPeerChannelBytes,
        fmt::format(
            "send and receive: {} peers x {} channels x 14 MiB", peers, channels.peer.value));
  }
  return term;
}

/// What the profile's framework opens; nothing where there is no plan.
FrameworkCommunicators framework_of(const RankProfile& profile) {
  const Json::json_pointer place("/training/dialect");
  if (!profile.plan.contains(place)) return {};
  const std::string name = profile.plan.at(place);
  for (const auto& entry : enum_names(Dialect{})) {
    if (entry.name == name) return communicators_of(entry.value);
  }
  return {};
}

/// A pair of ranks that send to each other.
RankGroup pair_of(const RankGroup& group, int64_t rank, int64_t peer) {
  const int64_t other = group.member(peer);
  return {.first = std::min(rank, other),
          .spans = {{.count = 2, .stride = std::abs(other - rank)}}};
}

/// What a framework opens besides the groups in use.
std::vector<MemoryTerm> framework_terms(const std::map<GroupKind, Use>& uses,
                                        const FrameworkCommunicators& framework,
                                        const RankProfile& profile,
                                        const ParallelLayout& layout,
                                        const Fabric& fabric) {
  std::vector<MemoryTerm> terms;
  const auto add = [&](const RankGroup& group, const std::string& name, const std::string& why) {
    const Use use{.group_size = group.size(), .connects_all = framework.connect_when_made};
    if (use.group_size <= 1) return;
    terms.push_back(communicator_term(name, use, place(group, fabric), fabric));
    terms.back().note += "; " + why;
  };
  for (const FrameworkCommunicator& other : framework.others) {
    add(layout.group(other.group, profile.rank),
        "second " + to_string(other.group),
        other.what_for);
  }
  if (!framework.pair_for_each_peer) return terms;
  for (const auto& [kind, use] : uses) {
    const RankGroup group = layout.group(kind, profile.rank);
    for (const int64_t peer : use.peers) {
      add(pair_of(group, profile.rank, peer), "pair", "send and receive between two ranks");
    }
  }
  return terms;
}

}  // namespace

MemoryTerm library_memory(const Gpu& gpu) {
  constexpr int kHopper = 9, kBlackwell = 10;
  constexpr int64_t kHandles = 2, kPrintfFifo = kMiB, kMallocHeap = 8 * kMiB;
  constexpr int64_t kResidentThreads = 2048;  // of a multiprocessor
  const int capability = std::stoi(gpu.compute_capability);
  const int64_t workspace = (capability == kHopper || capability == kBlackwell ? 32 : 4) * kMiB;
  const int64_t value = kHandles * workspace;
  const int64_t local = kResidentThreads * gpu.multiprocessors * kKiB;
  return {.name = "CUDA libraries",
          .value_bytes = value,
          .low_bytes = 0,
          .high_bytes = value + kPrintfFifo + kMallocHeap + local,
          .source = Source::kAssumed,
          .note = fmt::format("{} cuBLAS handles x {} MiB, their default workspace (cuBLAS manual, "
                              "cublasSetWorkspace)",
                              kHandles,
                              workspace / kMiB)};
}

MemoryTerm context_memory(const Gpu& gpu, ModuleLoading loading) {
  if (loading == ModuleLoading::kEager) {
    return {
        .name = "CUDA context, eager",
        .value_bytes = kEagerContextBytes,
        .low_bytes = kEagerLowBytes,
        .high_bytes = kEagerContextBytes + kLateModuleBytes,
        .source = Source::kPublished,
        .note =
            "nvidia-smi for a first tensor on A100 40GB, CUDA 11, all modules loaded (bigscience)"};
  }
  return {.name = "CUDA context",
          .value_bytes = gpu.context_bytes,
          .low_bytes = std::min(kFirstTensorBytes, gpu.context_bytes),
          .high_bytes = gpu.context_bytes + kLateModuleBytes,
          .source = Source::kAssumed,
          .note = gpu.context_source};
}

std::vector<MemoryTerm> communicator_memory(const RankProfile& profile,
                                            const ParallelLayout& layout,
                                            const Fabric& fabric) {
  std::vector<MemoryTerm> terms;
  const FrameworkCommunicators framework = framework_of(profile);
  const std::map<GroupKind, Use> uses = uses_of(profile);
  for (const auto& [kind, use] : uses) {
    const GroupPlacement placement = place(layout.group(kind, profile.rank), fabric);
    Use connected = use;
    connected.connects_all = framework.connect_when_made && use.collectives;
    terms.push_back(communicator_term(to_string(kind), connected, placement, fabric));
  }
  for (MemoryTerm& term : framework_terms(uses, framework, profile, layout, fabric)) {
    terms.push_back(std::move(term));
  }
  return terms;
}

std::vector<MemoryTerm> communicator_memory(const ProgramRecord& program, const Fabric& fabric) {
  std::vector<MemoryTerm> terms;
  for (const CommunicatorRecord& communicator : program.communicators) {
    if (communicator.size <= 1) continue;
    const bool is_placed = communicator.first_rank >= 0 && communicator.rank_stride > 0;
    const RankGroup group{.first = std::max<int64_t>(0, communicator.first_rank),
                          .spans = {{.count = communicator.size,
                                     .stride = is_placed ? communicator.rank_stride : 1}}};
    terms.push_back(
        communicator_term(communicator.name, use_of(communicator), place(group, fabric), fabric));
    if (!is_placed) terms.back().note += "; its ranks are taken to be neighbours";
  }
  return terms;
}

}  // namespace estimator
