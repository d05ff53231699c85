// Rates of the host: copies between host and GPU, and AdamW on the CPUs (data/host.json).
#pragma once

#include <string>
#include <vector>

#include "estimator/base/tagged.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// The link between a GPU and its host: rates of one direction at a time, with page-locked memory.
struct HostLink {
  std::string id;
  double to_device_bytes_per_second = 0;
  double to_host_bytes_per_second = 0;
  Source source = Source::kAssumed;
  std::string note;
  std::vector<std::string> gpus;  ///< ids of the GPUs that have such a link
};
template <class Visitor>
void visit_fields(Visitor& visit, HostLink& link) {
  visit("id", link.id, "its name");
  visit("to_device_bytes_per_second", link.to_device_bytes_per_second, "to the GPU");
  visit("to_host_bytes_per_second", link.to_host_bytes_per_second, "from the GPU");
  visit("source", link.source, "where the numbers come from");
  visit("note", link.note, "on what");
  visit("gpus", link.gpus, "that hang on such a link");
}

/// The rate of a copy between a GPU and memory of its host that is not page-locked: a thread of the
/// host copies it to or from a page-locked buffer. At most the link's rate.
TaggedNumber pageable_rate(bool is_to_device);

/// The link of the GPU with that id in the database. Throws std::logic_error when no link names it.
const HostLink& host_link(const std::string& gpu);

/// Parameters that all CPUs of one machine together update in a second.
TaggedNumber cpu_adam_rate(const Plan& plan);

/// What optimizers of torch.optim move in a second in the memory of the host: each reads the
/// gradient, and reads and writes the parameter and its states. AdamW's 28 bytes for each parameter
/// in fp32 at cpu_adam_rate(); slower if they run one operator after the other.
struct CpuOptimizerRate {
  double fused_bytes_per_second = 0;
  double unfused_bytes_per_second = 0;
};
/// The part of a rank whose machine has so many.
CpuOptimizerRate cpu_optimizer_rate(int64_t ranks_of_machine);
/// The same of a whole machine, as an estimate lists it.
std::vector<RateTerm> cpu_optimizer_terms();

/// Both rates, as an estimate lists them.
std::vector<RateTerm> host_rate_terms(const Plan& plan);

}  // namespace estimator
