// Traces written by hand.
#pragma once

#include <string>
#include <vector>

#include "estimator/profile/rank_profile.h"
#include "estimator/replay/trace_replay.h"

namespace estimator {

/// Of a host whose calls take no time.
inline const LaunchCost kFreeHost = {};

/// DGX H100 machines.
inline ClusterConfig h100_cluster(int64_t nodes) {
  ClusterConfig cluster;
  cluster.gpu = "h100-sxm";
  cluster.nodes = nodes;
  cluster.gpus_per_node = 8;
  cluster.nics_per_node = 8;
  cluster.intra_link = std::string("nvlink4");
  cluster.inter_link = std::string("ib-ndr-400");
  return cluster;
}

/// A rank whose works take the seconds that they are given with.
class TracedRank {
 public:
  explicit TracedRank(int64_t rank, int64_t world_size = 4) {
    profile.rank = rank;
    profile.world_size = world_size;
    profile.program.emplace();
    profile.trace.emplace();
    profile.trace->modules = {"model"};
  }

  int64_t communicator(const std::string& name,
                       int64_t size,
                       int64_t first = 0,
                       int64_t stride = 1) {
    profile.program->communicators.push_back({.name = name,
                                              .size = size,
                                              .rank = (profile.rank - first) / stride,
                                              .first_rank = first,
                                              .rank_stride = stride});
    return static_cast<int64_t>(profile.program->communicators.size()) - 1;
  }

  /// `operators`: begun before it.
  void compute(int64_t stream,
               double seconds,
               HostIssue issue = HostIssue::kNothing,
               int64_t operators = 0) {
    launch(stream, {.name = "kernel"}, seconds, issue);
    profile.trace->events.operators.back() = operators;
  }
  void collective(int64_t stream, int64_t communicator, double seconds) {
    launch(stream,
           {.kind = WorkKind::kCollective, .name = "all_reduce", .communicator = communicator},
           seconds);
  }
  void messages(int64_t stream,
                int64_t communicator,
                double seconds,
                const std::vector<TraceMessage>& messages) {
    int64_t bytes = 0;
    for (const TraceMessage& message : messages) bytes += message.bytes;
    launch(stream,
           {.kind = WorkKind::kMessages,
            .name = "messages",
            .bytes = bytes,
            .communicator = communicator,
            .messages = messages},
           seconds);
  }
  /// What the last work occupies.
  void last_occupies(WorkClass work_class, const Occupancy& occupancy) {
    prices.back().work_class = work_class;
    prices.back().occupancy = occupancy;
  }
  int64_t record(int64_t stream) {
    add(TraceEventKind::kRecord, stream, profile.trace->records);
    return profile.trace->records++;
  }
  void wait(int64_t stream, int64_t record) { add(TraceEventKind::kStreamWait, stream, record); }
  void host_waits_for_stream(int64_t stream) { add(TraceEventKind::kHostWaitStream, stream, 0); }
  void host_waits_for_record(int64_t record) { add(TraceEventKind::kHostWaitRecord, -1, record); }
  void host_waits_for_device() { add(TraceEventKind::kHostWaitDevice, -1, 0); }

  void host_updates(int64_t bytes, bool is_fused) {
    add(TraceEventKind::kHostUpdates,
        -1,
        bytes,
        is_fused ? HostIssue::kFusedUpdate : HostIssue::kUnfusedUpdate);
  }

  ReplayRank played() const { return {&profile, prices}; }

  RankProfile profile;
  std::vector<WorkPrice> prices;

 private:
  void launch(int64_t stream,
              const TraceWork& work,
              double seconds,
              HostIssue issue = HostIssue::kNothing) {
    add(TraceEventKind::kLaunch, stream, static_cast<int64_t>(prices.size()), issue);
    profile.trace->works.push_back(work);
    const bool communicates = work.communicator >= 0;
    prices.push_back(
        {.seconds = seconds,
         .work_class = communicates ? WorkClass::kCommunication : WorkClass::kMemoryBound});
  }
  void add(TraceEventKind kind,
           int64_t stream,
           int64_t item,
           HostIssue issue = HostIssue::kNothing) {
    TraceEvents& events = profile.trace->events;
    events.kind.push_back(static_cast<int64_t>(kind));
    events.stream.push_back(stream);
    events.item.push_back(item);
    events.module.push_back(0);
    events.direction.push_back(0);
    events.issue.push_back(static_cast<int64_t>(issue));
    events.operators.push_back(0);
  }
};

}  // namespace estimator
