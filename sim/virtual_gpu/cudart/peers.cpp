#include "sim/virtual_gpu/cudart/peers.h"

#include <mutex>
#include <set>
#include <utility>

namespace virtual_gpu {
namespace {

class PeerAccess {
 public:
  /// False if it is enabled already.
  bool enable(int ordinal, int peer) {
    const std::lock_guard lock(mutex_);
    return enabled_.emplace(ordinal, peer).second;
  }
  /// False if it is not enabled.
  bool disable(int ordinal, int peer) {
    const std::lock_guard lock(mutex_);
    return enabled_.erase({ordinal, peer}) > 0;
  }

 private:
  std::mutex mutex_;
  std::set<std::pair<int, int>> enabled_;
};

PeerAccess& peer_access() {
  static PeerAccess* const access = new PeerAccess;
  return *access;
}

bool is_other_device(const Device& device, int ordinal, int peer) {
  return peer >= 0 && peer < device.spec.device_count && peer != ordinal;
}

}  // namespace

bool can_access_peer(const Device& device, int ordinal, int peer) {
  return device.spec.nvlinks > 0 && is_other_device(device, ordinal, peer);
}

std::optional<int> peer_attribute(const Device& device, int attribute, int ordinal, int peer) {
  switch (attribute) {
    case cudaDevP2PAttrPerformanceRank:
      return 0;  // no pair is faster than another
    case cudaDevP2PAttrAccessSupported:
    case cudaDevP2PAttrNativeAtomicSupported:
    case cudaDevP2PAttrCudaArrayAccessSupported:
      return can_access_peer(device, ordinal, peer);
    default:
      return std::nullopt;
  }
}

cudaError_t enable_peer_access(int peer) {
  const int ordinal = current_device();
  if (!is_other_device(*device(), ordinal, peer)) return cudaErrorInvalidDevice;
  if (!can_access_peer(*device(), ordinal, peer)) return cudaErrorPeerAccessUnsupported;
  return peer_access().enable(ordinal, peer) ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
}

cudaError_t disable_peer_access(int peer) {
  const int ordinal = current_device();
  if (!is_other_device(*device(), ordinal, peer)) return cudaErrorInvalidDevice;
  return peer_access().disable(ordinal, peer) ? cudaSuccess : cudaErrorPeerAccessNotEnabled;
}

}  // namespace virtual_gpu
