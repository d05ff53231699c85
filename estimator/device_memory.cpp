#include "estimator/device_memory.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "estimator/units.h"

namespace estimator {
namespace {

constexpr int64_t kConnectionBytes = 12 * kMiB;  // 10 MiB to receive, 2 MiB to send
constexpr int64_t kPeerChannelBytes = 14 * kMiB;
constexpr int64_t kNvlsBytesPerRank = 2 * 16 * kMiB;  // 16 channels
constexpr int64_t kFewestNvlsRanks = 3;  // NCCL_NVLS_ENABLE = 2: more than two local GPUs

/// Channels that NCCL opens. NVLink: 24 in graph dumps of 8 x A100 and 8 x H100 (issue 1197), 32 to
/// a peer (issue 1685); 16 rings for 8 x 400 Gb (speed grid). The rest is assumed.
struct Channels {
  int64_t ring;
  int64_t peer;
};
Channels channels_of(const GroupPlacement& placement, const Fabric& fabric) {
  if (placement.islands() == 1) {
    return fabric.intra.kind == "nvlink" ? Channels{24, 32} : Channels{4, 2};
  }
  return placement.ranks_per_island > 1 ? Channels{16, 2} : Channels{4, 2};
}

/// What a rank does in one communicator.
struct Use {
  int64_t group_size = 0;
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

MemoryTerm communicator_term(GroupKind kind,
                             const Use& use,
                             const GroupPlacement& placement,
                             const Fabric& fabric) {
  const Channels channels = channels_of(placement, fabric);
  MemoryTerm term;
  term.name = fmt::format("NCCL {} group of {}", to_string(kind), use.group_size);
  term.source = Source::kAssumed;
  const auto add = [&](int64_t bytes, const std::string& how) {
    term.value_bytes += bytes;
    term.note += (term.note.empty() ? "" : "; ") + how;
  };
  if (use.collectives) {
    add(channels.ring * kConnectionBytes, fmt::format("ring: {} channels x 12 MiB", channels.ring));
    if (use.all_reduce && placement.islands() > 1) {
      add(2 * channels.ring * kConnectionBytes,
          fmt::format("tree: 2 x {} channels x 12 MiB", channels.ring));
    }
    if (fabric.intra.nvls_bytes_per_second && placement.ranks_per_island >= kFewestNvlsRanks) {
      add(placement.ranks_per_island * kNvlsBytesPerRank,
          fmt::format("NVLS: {} local ranks x 32 MiB", placement.ranks_per_island));
    }
  }
  if (!use.peers.empty()) {
    const auto peers = static_cast<int64_t>(use.peers.size());
    add(peers * channels.peer * kPeerChannelBytes,
        fmt::format("send and receive: {} peers x {} channels x 14 MiB", peers, channels.peer));
  }
  return term;
}

}  // namespace

MemoryTerm context_memory(const Gpu& gpu) {
  return {.name = "CUDA context",
          .value_bytes = gpu.context_bytes,
          .source = Source::kAssumed,
          .note = gpu.context_source};
}

std::vector<MemoryTerm> communicator_memory(const RankProfile& profile,
                                            const ParallelLayout& layout,
                                            const Fabric& fabric) {
  std::vector<MemoryTerm> terms;
  for (const auto& [kind, use] : uses_of(profile)) {
    const GroupPlacement placement = place(layout.group(kind, profile.rank), fabric);
    terms.push_back(communicator_term(kind, use, placement, fabric));
  }
  return terms;
}

}  // namespace estimator
