#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace virtual_gpu {

/// The known contents of device memory: small values that came from the host. Programs send flags,
/// sizes and seeds through the device and read them back, and these are remembered. What a kernel
/// computes is not known. Thread-safe.
///
/// Kernels do not say what they write. The recorder of `onerank exec` knows it from PyTorch's
/// operators and allocator, and calls forget(), or forget_computed() if it does not know the place.
/// Until something calls enable(), nothing is remembered.
class Shadow {
 public:
  /// Remembers values of at most `largest_bytes`. Larger writes are data and not control values;
  /// they only make the old values unknown.
  void enable(size_t largest_bytes) { largest_bytes_ = largest_bytes; }
  /// Sets whether writes and fills of this thread are remembered, as they are at first.
  void remember_here(bool remember);

  /// Who made a value. A copy of a value has the same origin.
  enum class Origin { kHost, kDevice };
  void write(uint64_t address, const void* value, size_t bytes, Origin origin = Origin::kHost);
  /// Values of any size that somebody knows, if any are remembered.
  void tell(uint64_t address, const void* value, size_t bytes, Origin origin);
  /// A fill is a write by the device.
  void fill(uint64_t address, int value, size_t bytes);
  void copy(uint64_t destination, uint64_t source, size_t bytes);
  /// Copies the bytes to `value`, with zeros for unknown bytes. Returns empty if any byte is
  /// unknown, kHost if any byte came from the host, else kDevice. knows() returns the same without
  /// copying.
  std::optional<Origin> read(uint64_t address, void* value, size_t bytes) const;
  std::optional<Origin> knows(uint64_t address, size_t bytes) const;

  /// The number that the next write will have.
  uint64_t time() const;
  /// Forgets what was written to the range before the write number `before`.
  void forget(uint64_t address, size_t bytes, uint64_t before = UINT64_MAX);
  /// Forgets all values that the device has made until now, at all addresses. Values from the host
  /// stay.
  void forget_computed();

 private:
  /// A run of known bytes: a part of the bytes of one write. The bytes never change, so cutting or
  /// copying a piece copies no bytes. If all bytes are equal, only one is stored, since programs
  /// fill much memory with zeros.
  struct Piece {
    std::shared_ptr<const std::vector<char>> written;
    size_t first = 0;  ///< index of its first byte in `written`
    size_t bytes = 0;
    uint64_t time = 0;
    Origin origin = Origin::kHost;

    bool is_uniform() const { return written->size() == 1; }
    /// The part of `count` bytes from `offset` on, with the same time and origin.
    Piece part(size_t offset, size_t count) const {
      return {written, is_uniform() ? 0 : first + offset, count, time, origin};
    }
    void read(char* value) const;
  };
  using Pieces = std::map<uint64_t, Piece>;  // by first address; they do not overlap

  bool remembers(size_t bytes) const;

  // These are called with the mutex held.
  void erase(uint64_t address, size_t bytes, uint64_t before);
  /// `written` is as in Piece.
  void insert(uint64_t address, std::vector<char> written, size_t bytes, Origin origin);
  bool is_forgotten(const Piece& piece) const;
  /// Calls visit(address, part) for the known parts of the range, in order.
  template <class Visit>
  void for_each_part(uint64_t address, size_t bytes, const Visit& visit) const;
  /// The same; returns what read() returns.
  template <class Visit>
  std::optional<Origin> visit_known(uint64_t address, size_t bytes, const Visit& visit) const;
  Pieces::const_iterator first_touching(uint64_t address) const;

  std::atomic<size_t> largest_bytes_ = 0;
  mutable std::mutex mutex_;
  Pieces pieces_;
  uint64_t time_ = 0;
  uint64_t computed_since_ = 0;  // values of the device from before are forgotten, erased later
};

}  // namespace virtual_gpu
