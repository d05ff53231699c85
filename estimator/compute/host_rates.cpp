#include "estimator/compute/host_rates.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "estimator/base/contains.h"
#include "estimator/base/database.h"

namespace onerank_data {
extern const std::string_view host_json;
}

namespace estimator {
namespace {

struct HostTable {
  std::vector<HostLink> links;
  TaggedNumber pageable_to_host, pageable_to_device;
  TaggedNumber cpu_adam;
  TaggedNumber cpu_unfused_slowdown;
};
template <class Visitor>
void visit_fields(Visitor& visit, HostTable& table) {
  visit("links", table.links, "between GPUs and their hosts");
  visit("pageable_to_host", table.pageable_to_host, "bytes per second to pageable memory");
  visit("pageable_to_device", table.pageable_to_device, "bytes per second from such memory");
  visit("cpu_adam", table.cpu_adam, "parameters that a machine's CPUs update in a second");
  visit("cpu_unfused_slowdown",
        table.cpu_unfused_slowdown,
        "of an optimizer whose operators run one after the other");
}

const HostTable& host_table() {
  static const auto table = read_document<HostTable>(onerank_data::host_json, "host.json");
  return table;
}

}  // namespace

const HostLink& host_link(const std::string& gpu) {
  const std::vector<HostLink>& links = host_table().links;
  const auto found = std::find_if(
      links.begin(), links.end(), [&](const HostLink& link) { return contains(link.gpus, gpu); });
  if (found == links.end()) throw std::logic_error("host.json names no link of " + gpu);
  return *found;
}

TaggedNumber pageable_rate(bool is_to_device) {
  return is_to_device ? host_table().pageable_to_device : host_table().pageable_to_host;
}

TaggedNumber cpu_adam_rate(const Plan& plan) {
  return given_or(plan.time.cpu_adam_parameters_per_second, host_table().cpu_adam);
}

CpuOptimizerRate cpu_optimizer_rate(int64_t ranks_of_machine) {
  constexpr double kAdamBytesOfParameter = 7 * 4;  // the gradient, and three tensors there and back
  const HostTable& table = host_table();
  const double fused =
      kAdamBytesOfParameter * table.cpu_adam.value / static_cast<double>(ranks_of_machine);
  return {.fused_bytes_per_second = fused,
          .unfused_bytes_per_second = fused / table.cpu_unfused_slowdown.value};
}

std::vector<RateTerm> cpu_optimizer_terms() {
  const CpuOptimizerRate rate = cpu_optimizer_rate(1);
  const HostTable& table = host_table();
  return {{"fused optimizer on a machine's CPUs",
           rate.fused_bytes_per_second,
           "bytes_per_second",
           table.cpu_adam.source,
           table.cpu_adam.note},
          {"other optimizer on a machine's CPUs",
           rate.unfused_bytes_per_second,
           "bytes_per_second",
           table.cpu_unfused_slowdown.source,
           table.cpu_unfused_slowdown.note}};
}

std::vector<RateTerm> host_rate_terms(const Plan& plan) {
  const HostLink& link = host_link(plan.cluster.gpu);
  const TaggedNumber adam = cpu_adam_rate(plan);
  const auto copies = [&](const char* name, double rate) {
    return RateTerm{name, rate, "bytes_per_second", link.source, link.id + ": " + link.note};
  };
  return {
      copies("copies to the host", link.to_host_bytes_per_second),
      copies("copies from the host", link.to_device_bytes_per_second),
      {"AdamW on a machine's CPUs", adam.value, "parameters_per_second", adam.source, adam.note}};
}

}  // namespace estimator
