#include "estimator/memory/communicator_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "estimator/base/fields.h"
#include "estimator/base/units.h"
#include "estimator/memory/framework_communicators.h"
#include "estimator/plan/frameworks.h"

namespace estimator {
namespace {

constexpr int64_t kReceiveBytes = 10 * kMiB;
constexpr int64_t kSendBytes = 2 * kMiB;
constexpr int64_t kNetworkSendBytes = 10 * kMiB;
constexpr int64_t kPeerChannelBytes = kReceiveBytes + 2 * kSendBytes;
constexpr int64_t kPoolChannelBytes = 2 * kMiB;  // 16 steps of 128 KiB
constexpr int64_t kNvlsChannelBytes = 2 * kMiB;  // 8 steps of 128 KiB, for each local rank, twice
constexpr int64_t kFewestNvlsRanks = 3;          // NCCL_NVLS_ENABLE = 2: more than two local GPUs

constexpr double kNicChannelBytesPerSecond = 14e9;  // graph/paths.cc, NCCL_P2P_PER_CHANNEL_NET_BW
constexpr int64_t kFewestNicChannels = 2;           // the same, ncclTopoGetNchannels
constexpr int64_t kPeersOfABatch = 8;               // NCCL_MAX_DEV_WORK_P2P_PER_BATCH

/// A value and what it may be at least and at most.
struct Band {
  int64_t low = 0, value = 0, high = 0;
};

constexpr Band kNvlsChannels = {0, 16, 24};

/// NCCL makes the channels of point-to-point a power of two (ncclTopoComputeP2pChannels).
Band powers_of_two(const Band& band) {
  const auto up = [](int64_t n) { return static_cast<int64_t>(std::bit_ceil<uint64_t>(n)); };
  return {up(band.low), up(band.value), up(band.high)};
}

/// Channels that NCCL opens. NVLink: 24 in graph dumps of 8 x A100 and 8 x H100 (issue 1197), 32 to
/// a peer (issue 1685); 16 rings for 8 x 400 Gb (speed grid), two for each NIC. The rest is
/// assumed.
Band ring_channels(const GroupPlacement& placement, const Fabric& fabric) {
  if (placement.domains() == 1) {
    return fabric.intra.kind == "nvlink" ? Band{16, 24, 32} : Band{2, 4, 8};
  }
  if (placement.ranks_per_domain == 1) return {2, 4, 16};
  const double nics = fabric.nics_per_gpu * static_cast<double>(fabric.domain_gpus);
  return {4, std::clamp<int64_t>(std::llround(2 * nics), 4, 32), 32};
}

/// Channels to one peer: inside a domain all; across domains as many as keep the NIC busy, fewer
/// where all peers together would need more than there are (ncclTopoComputeP2pChannels).
Band peer_channels(const GroupPlacement& placement, const Fabric& fabric) {
  if (placement.domains() == 1) {
    return fabric.intra.kind == "nvlink" ? Band{2, 32, 32} : Band{2, 2, 4};
  }
  const auto nic = static_cast<int64_t>(
      std::ceil(fabric.inter.nominal_bytes_per_second / kNicChannelBytesPerSecond));
  const Band all = powers_of_two(ring_channels(placement, fabric));
  const int64_t batches = divide_up(placement.ranks, kPeersOfABatch);
  int64_t count = powers_of_two({1, std::max(kFewestNicChannels, nic), 32}).value;
  while (count > 1 && count * batches > all.value) count /= 2;
  return {1, count, 32};
}

/// One communicator: who is in it, and what this rank does there.
struct Communicator {
  std::string name;
  RankGroup group;
  int64_t rank = 0;           ///< global
  bool connects_all = false;  ///< ring and tree, used or not
  bool collectives = false;
  bool all_reduce = false;
  std::set<int64_t> peers;  ///< member indices, of sends and receives

  void add(CollectiveKind kind, int64_t peer) {
    if (is_message(kind)) {
      peers.insert(peer);
    } else if (kind == CollectiveKind::kAllToAll) {
      for (int64_t member = 0; member < group.size(); ++member) {
        if (group.member(member) != rank) peers.insert(member);
      }
    } else {
      collectives = true;
      all_reduce |= kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kBarrier;
    }
  }
};

/// Sums parts of one term, each a number of channels times bytes.
class TermSum {
 public:
  explicit TermSum(const Communicator& communicator) {
    term_.name = fmt::format("NCCL {} group of {}", communicator.name, communicator.group.size());
    term_.source = Source::kAssumed;
  }
  void add(const Band& channels, int64_t bytes_of_one, const std::string& how) {
    term_.low_bytes += channels.low * bytes_of_one;
    term_.value_bytes += channels.value * bytes_of_one;
    term_.high_bytes += channels.high * bytes_of_one;
    term_.note += (term_.note.empty() ? "" : "; ") + how;
  }
  MemoryTerm term() && { return std::move(term_); }

 private:
  MemoryTerm term_;
};

void add_collectives(const Communicator& communicator,
                     const GroupPlacement& placement,
                     const Fabric& fabric,
                     TermSum& sum) {
  const Band channels = ring_channels(placement, fabric);
  const int64_t ranks = placement.ranks;
  const int64_t over_network =
      placement.domains() > 1 ? (kNetworkSendBytes - kSendBytes) / placement.ranks_per_domain : 0;
  const int64_t connection = kReceiveBytes + kSendBytes + over_network;
  const double mib = static_cast<double>(connection) / kMiB;
  sum.add(channels, connection, fmt::format("ring: {} channels x {:.4g} MiB", channels.value, mib));
  if (communicator.connects_all) {
    sum.add(channels,
            2 * connection * (ranks - 1) / ranks,
            fmt::format("tree, connected when made: {} channels x {:.4g} MiB x 2 ({} - 1) / {}",
                        channels.value,
                        mib,
                        ranks,
                        ranks));
  } else if (communicator.all_reduce && placement.domains() > 1) {
    sum.add(channels,
            2 * connection,
            fmt::format("tree: 2 x {} channels x {:.4g} MiB", channels.value, mib));
  }
  if (fabric.intra.nvls_bytes_per_second && placement.ranks_per_domain >= kFewestNvlsRanks) {
    sum.add(kNvlsChannels,
            placement.ranks_per_domain * kNvlsChannelBytes,
            fmt::format("NVLS: {} local ranks x 32 MiB", placement.ranks_per_domain));
  }
}

/// How many ranks' messages leave by this rank's NIC: NVLink carries a message for another rail to
/// the neighbour that is on it (PXN), so with peers on every rail each neighbour's pool is here.
int64_t sending_pools(const Communicator& communicator,
                      const GroupPlacement& placement,
                      const Fabric& fabric) {
  const bool other_rails =
      std::any_of(communicator.peers.begin(), communicator.peers.end(), [&](int64_t peer) {
        const int64_t other = communicator.group.member(peer);
        return !fabric.same_domain(communicator.rank, other) &&
               (other - communicator.rank) % fabric.machine_gpus != 0;
      });
  return other_rails && fabric.intra.kind == "nvlink" ? placement.ranks_per_domain : 1;
}

void add_peers(const Communicator& communicator,
               const GroupPlacement& placement,
               const Fabric& fabric,
               TermSum& sum) {
  const auto near =
      std::count_if(communicator.peers.begin(), communicator.peers.end(), [&](int64_t peer) {
        return fabric.same_domain(communicator.rank, communicator.group.member(peer));
      });
  if (near > 0) {
    const Band channels = peer_channels(placement, fabric);
    sum.add(channels,
            near * kPeerChannelBytes,
            fmt::format("send and receive: {} peers x {} channels x 14 MiB", near, channels.value));
  }
  if (near < static_cast<int64_t>(communicator.peers.size())) {
    const Band channels = powers_of_two(ring_channels(placement, fabric));
    const int64_t pools = sending_pools(communicator, placement, fabric) + 1;
    sum.add(channels,
            pools * kPoolChannelBytes,
            fmt::format("over the network: {} pools x {} channels x 2 MiB", pools, channels.value));
  }
}

MemoryTerm memory_of(const Communicator& communicator, const Fabric& fabric) {
  const GroupPlacement placement = place(communicator.group, fabric);
  TermSum sum(communicator);
  if (communicator.collectives || communicator.connects_all) {
    add_collectives(communicator, placement, fabric, sum);
  }
  add_peers(communicator, placement, fabric, sum);
  return std::move(sum).term();
}

std::map<GroupKind, Communicator> communicators_of(const RankProfile& profile,
                                                   const ParallelLayout& layout,
                                                   bool connect_when_made) {
  std::map<GroupKind, Communicator> communicators;
  for (const CollectiveRecord& record : profile.collectives) {
    const CollectiveCall& call = record.call;
    if (call.group_size <= 1) continue;
    const auto [place, is_new] = communicators.try_emplace(call.group);
    Communicator& communicator = place->second;
    if (is_new) {
      communicator.name = to_string(call.group);
      communicator.group = layout.group(call.group, profile.rank);
      communicator.rank = profile.rank;
    }
    communicator.add(call.kind, call.peer);
    communicator.connects_all = connect_when_made && communicator.collectives;
  }
  return communicators;
}

/// Interleaved stages of Megatron-LM that go on while they send post each message alone
/// (batch_p2p_comm in megatron/training/arguments.py, _p2p_ops in p2p_communication.py), for which
/// torch.distributed opens a communicator of two ranks.
bool sends_one_by_one(const Json& plan, Framework framework) {
  const Json& parallelism = plan.at("parallelism");
  return traits_of(framework).single_messages &&
         parallelism.value("virtual_stages", int64_t{1}) > 1 &&
         parallelism.value("overlap_p2p_communication", true);
}

/// What the profile's framework opens; nothing where there is no plan.
FrameworkCommunicators framework_of(const RankProfile& profile) {
  const Json::json_pointer place("/training/framework");
  if (!profile.plan.json().contains(place)) return {};
  const auto framework = value_named<Framework>(profile.plan.json().at(place).get<std::string>());
  if (!framework) return {};
  FrameworkCommunicators communicators = communicators_of(*framework);
  communicators.messages_in_pairs = sends_one_by_one(profile.plan.json(), *framework);
  return communicators;
}

/// A pair of ranks that send to each other.
RankGroup pair_of(const RankGroup& group, int64_t rank, int64_t peer) {
  const int64_t other = group.member(peer);
  return {.first = std::min(rank, other),
          .spans = {{.count = 2, .stride = std::abs(other - rank)}},
          .place_is_known = true};
}

/// Each of the pipeline's peers in a communicator of its own.
std::vector<Communicator> pairs_of(Communicator& pipeline) {
  std::vector<Communicator> pairs;
  for (const int64_t peer : pipeline.peers) {
    Communicator& pair = pairs.emplace_back();
    pair.name = "pipeline pair";
    pair.group = pair_of(pipeline.group, pipeline.rank, peer);
    pair.rank = pipeline.rank;
    pair.peers = {pair.group.first == pipeline.rank ? 1 : 0};
  }
  pipeline.peers.clear();
  return pairs;
}

/// What a framework opens besides the groups in use.
std::vector<MemoryTerm> framework_terms(const std::map<GroupKind, Communicator>& used,
                                        const FrameworkCommunicators& framework,
                                        const RankProfile& profile,
                                        const ParallelLayout& layout,
                                        const Fabric& fabric) {
  std::vector<MemoryTerm> terms;
  const auto add = [&](const RankGroup& group, const std::string& name, const std::string& why) {
    if (group.size() <= 1) return;
    terms.push_back(memory_of({.name = name,
                               .group = group,
                               .rank = profile.rank,
                               .connects_all = framework.connect_when_made},
                              fabric));
    terms.back().note += "; " + why;
  };
  for (const FrameworkCommunicator& other : framework.others) {
    add(layout.group(other.group, profile.rank),
        "second " + to_string(other.group),
        other.what_for);
  }
  if (!framework.pair_for_each_peer) return terms;
  for (const auto& [kind, communicator] : used) {
    for (const int64_t peer : communicator.peers) {
      add(pair_of(communicator.group, profile.rank, peer),
          "pair",
          "send and receive between two ranks");
    }
  }
  return terms;
}

Communicator communicator_of(const CommunicatorRecord& record) {
  Communicator communicator{.name = record.name, .group = group_of(record)};
  communicator.rank = communicator.group.member(record.rank);
  for (const ProgramCollective& call : record.calls) {
    if (const auto kind = value_named<CollectiveKind>(call.kind))
      communicator.add(*kind, call.peer);
  }
  return communicator;
}

}  // namespace

std::vector<MemoryTerm> communicator_memory(const RankProfile& profile,
                                            const ParallelLayout& layout,
                                            const Fabric& fabric) {
  std::vector<MemoryTerm> terms;
  const FrameworkCommunicators framework = framework_of(profile);
  std::map<GroupKind, Communicator> used =
      communicators_of(profile, layout, framework.connect_when_made);
  const auto pipeline = used.find(GroupKind::kPipeline);
  if (framework.messages_in_pairs && pipeline != used.end()) {
    for (const Communicator& pair : pairs_of(pipeline->second)) {
      terms.push_back(memory_of(pair, fabric));
    }
    if (!pipeline->second.collectives) used.erase(pipeline);
  }
  for (const auto& [kind, communicator] : used) terms.push_back(memory_of(communicator, fabric));
  for (MemoryTerm& term : framework_terms(used, framework, profile, layout, fabric)) {
    terms.push_back(std::move(term));
  }
  return terms;
}

std::vector<MemoryTerm> communicator_memory(const ProgramRecord& program, const Fabric& fabric) {
  std::vector<MemoryTerm> terms;
  for (const CommunicatorRecord& record : program.communicators) {
    if (record.size <= 1) continue;
    terms.push_back(memory_of(communicator_of(record), fabric));
    if (!is_placed(record)) terms.back().note += "; its ranks are taken to be neighbours";
  }
  return terms;
}

}  // namespace estimator
