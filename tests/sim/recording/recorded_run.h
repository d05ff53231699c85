// Runs a few operators under a recorder on the CPU, as iteration 1 of a rank.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/recording/recorder.h"

namespace sim {

inline const std::string kForwardBackward = "iteration_1.forward_backward";

struct RecordedRun {
  std::string phase = kForwardBackward;
  estimator::MicroBatchRecord micro_batches = {.total = 1, .executed = 1};

  /// The profile of `body`, which is given the recorder.
  template <class Body>
  estimator::RankProfile of(const Body& body) const {
    const auto memory = make_memory_reader(estimator::DeviceKind::kCpu);
    Recorder recorder({.memory = *memory});
    recorder.begin_phase(phase);
    recorder.start_recording();
    body(recorder);
    recorder.stop_recording();
    recorder.end_phase();
    estimator::RankProfile profile;
    profile.micro_batches = micro_batches;
    recorder.finish(profile);
    return profile;
  }
};

/// The records of operators named `name`.
inline std::vector<estimator::OperatorRecord> operators_named(const estimator::RankProfile& profile,
                                                              const std::string& name) {
  std::vector<estimator::OperatorRecord> found;
  for (const estimator::OperatorRecord& record : profile.operators) {
    if (record.name == name) found.push_back(record);
  }
  return found;
}

/// The record of the operator named `name`; a failure if there is not exactly one.
inline estimator::OperatorRecord only(const estimator::RankProfile& profile,
                                      const std::string& name) {
  const auto found = operators_named(profile, name);
  EXPECT_EQ(found.size(), 1u) << name;
  return found.empty() ? estimator::OperatorRecord{} : found.front();
}

inline std::vector<std::string> names_of_operators(const estimator::RankProfile& profile) {
  std::vector<std::string> names;
  for (const estimator::OperatorRecord& record : profile.operators) names.push_back(record.name);
  return names;
}

}  // namespace sim
