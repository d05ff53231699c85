// How the works that run on one GPU at the same time share it; trace_replay.h has the rules.
#pragma once

#include <vector>

#include "estimator/replay/work_price.h"

namespace estimator {

/// What the works of one GPU need together. add() is called for each of them, then share_memory(),
/// then rate().
class GpuDemand {
 public:
  /// `memory_needs` is room to work in, which must be empty and outlive it.
  explicit GpuDemand(std::vector<double>& memory_needs) : memory_needs_(memory_needs) {}

  void add(const WorkPrice& price);
  void share_memory();

  /// Multiprocessors that NCCL needs, as a part of all.
  double of_nccl() const { return nccl_; }
  /// How fast a work goes on, as a part of its speed alone.
  double rate(const WorkPrice& price) const;

 private:
  double rate_of_units(const WorkPrice& price) const;

  std::vector<double>& memory_needs_;  // parts of the bandwidth
  double kernels_ = 0;                 // multiprocessors
  double nccl_ = 0;                    // multiprocessors
  double memory_share_ = 1;            // that one work may have
  PortUse ports_;
};

}  // namespace estimator
