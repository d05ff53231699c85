#include "sim/verify/ranks/gloo_groups.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "sim/recording/counting_cpu_allocator.h"

namespace sim {
namespace {

using c10d::ProcessGroupGloo;

std::vector<int64_t> ask_members(c10d::Backend& backend, int64_t rank) {
  at::Tensor mine = at::full({1}, rank, at::kLong);
  at::Tensor all = at::empty({backend.getSize()}, at::kLong);
  backend._allgather_base(all, mine)->wait();
  const int64_t* members = all.const_data_ptr<int64_t>();
  return {members, members + all.numel()};
}

/// With a thread of Gloo's own, of the policy of the thread that makes it. A sender wakes its
/// peer's while it still holds the lock of the connection; where the peer's took its processor
/// then, its own would ask for that lock in a busy loop. A thread of SCHED_BATCH takes it from
/// nobody.
std::shared_ptr<gloo::transport::Device> make_device(const std::string& address) {
  const auto make = [&] {
    const sched_param usual{};
    sched_setscheduler(0, SCHED_BATCH, &usual);  // where it may not, it is slower
    return ProcessGroupGloo::createDeviceForHostname(address);
  };
  return std::async(std::launch::async, make).get();
}

}  // namespace

RealGroup make_gloo_group(const GlooNetwork& network,
                          const estimator::RankGroup& group,
                          int64_t rank) {
  const NotCounted network_memory;
  const std::string name =
      fmt::format("group/{}/{}", estimator::to_string(group.kind), group.first);
  auto options = ProcessGroupGloo::Options::create(network.timeout);
  options->devices = {make_device(network.address)};
  options->threads = 1;
  try {
    RealGroup made{.kind = group.kind,
                   .backend = c10::make_intrusive<ProcessGroupGloo>(
                       c10::make_intrusive<c10d::PrefixStore>(name, network.store),
                       static_cast<int>(group.index_of(rank)),
                       static_cast<int>(group.size()),
                       options)};
    made.members = ask_members(*made.backend, rank);
    return made;
  } catch (const std::exception& error) {
    const std::string why = error.what();
    throw std::runtime_error(fmt::format("the {} group of {} ranks cannot be formed: {}",
                                         estimator::to_string(group.kind),
                                         group.size(),
                                         why.substr(0, why.find('\n'))));
  }
}

BackendMap make_gloo_groups(const GlooNetwork& network,
                            const estimator::ParallelLayout& layout,
                            int64_t rank,
                            const std::vector<estimator::GroupKind>& kinds,
                            const estimator::GroupCallSink& sink) {
  BackendMap backends;
  for (const estimator::GroupKind kind : kinds) {
    const estimator::RankGroup group = layout.group(kind, rank);
    if (group.size() == 1 || group.index_of(rank) < 0) continue;
    backends[kind] = record_calls(make_gloo_group(network, group, rank), sink);
  }
  return backends;
}

std::string local_address_towards(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;  // connecting sends nothing, but chooses the route
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) throw std::runtime_error(fmt::format("{}: {}", host, gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    const int descriptor = socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) continue;
    sockaddr_storage local{};
    socklen_t length = sizeof local;
    char text[NI_MAXHOST] = "";
    const bool known = connect(descriptor, address->ai_addr, address->ai_addrlen) == 0 &&
                       getsockname(descriptor, reinterpret_cast<sockaddr*>(&local), &length) == 0 &&
                       getnameinfo(reinterpret_cast<sockaddr*>(&local),
                                   length,
                                   text,
                                   sizeof text,
                                   nullptr,
                                   0,
                                   NI_NUMERICHOST) == 0;
    close(descriptor);
    if (known) return text;
  }
  throw std::runtime_error(fmt::format("{}: no route to it", host));
}

}  // namespace sim
