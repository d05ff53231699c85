// What the host does for the GPU: copies over their link, and AdamW on its CPUs (data/host.json).
#pragma once

#include <string>
#include <vector>

#include "estimator/base/tagged.h"
#include "estimator/plan/plan.h"

namespace estimator {

/// Between a GPU and its host, one direction at a time; page-locked memory.
struct HostLink {
  std::string id;
  double to_device_bytes_per_second = 0;
  double to_host_bytes_per_second = 0;
  Source source = Source::kAssumed;
  std::string note;
  std::vector<std::string> gpus;  ///< that hang on such a link
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

/// Of the GPU with that id in the database. Throws std::logic_error when no link names it.
const HostLink& host_link(const std::string& gpu);

/// Parameters that the CPUs of one machine update in a second, all of them together.
TaggedNumber cpu_adam_rate(const Plan& plan);

/// Both, as an estimate lists them.
std::vector<RateTerm> host_rate_terms(const Plan& plan);

}  // namespace estimator
