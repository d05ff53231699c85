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

/// What is known of the contents of device memory: small values that came from the host. Programs
/// send flags, sizes and seeds through the device and read them back; those survive. What a kernel
/// computes is not known. Thread-safe.
///
/// Kernels do not tell what they write, so who knows (the recorder of `onerank exec`, from
/// PyTorch's operators and allocator) says so with forget(), or with forget_computed() where it
/// cannot tell the place. Until such a one calls enable(), nothing is ever known.
class Shadow {
 public:
  /// Larger writes are data, not control values: they only make what was there unknown.
  void enable(size_t largest_bytes) { largest_bytes_ = largest_bytes; }
  /// Whether this thread's writes and fills are remembered; at first they are.
  void remember_here(bool remember);

  /// Who made a value: a copy keeps it.
  enum class Origin { kHost, kDevice };
  void write(uint64_t address, const void* value, size_t bytes, Origin origin = Origin::kHost);
  /// By the device.
  void fill(uint64_t address, int value, size_t bytes);
  void copy(uint64_t destination, uint64_t source, size_t bytes);
  /// Fills `value`, with zeros where nothing is known. Empty unless all of it is known; else who
  /// made it: the host, if any of it.
  std::optional<Origin> read(uint64_t address, void* value, size_t bytes) const;
  std::optional<Origin> knows(uint64_t address, size_t bytes) const;

  /// The number of the next write.
  uint64_t time() const;
  /// Forgets what was written there before the write number `before`.
  void forget(uint64_t address, size_t bytes, uint64_t before = UINT64_MAX);
  /// Forgets all that the device made until now, wherever it is. What the host sent stays.
  void forget_computed();

 private:
  /// Known bytes that follow each other. Cutting or copying a piece copies none of them: they are
  /// never changed, and a piece is a part of what was written at once. Bytes that are all equal are
  /// kept as one: programs fill much with zeros.
  struct Piece {
    std::shared_ptr<const std::vector<char>> written;
    size_t first = 0;  ///< of `written`
    size_t bytes = 0;
    uint64_t time = 0;
    Origin origin = Origin::kHost;

    bool is_uniform() const { return written->size() == 1; }
    /// `count` bytes from `offset` on, of the same time and origin.
    Piece part(size_t offset, size_t count) const {
      return {written, is_uniform() ? 0 : first + offset, count, time, origin};
    }
    void read(char* value) const;
  };
  using Pieces = std::map<uint64_t, Piece>;  // by first address; they do not overlap

  bool remembers(size_t bytes) const;

  // All called with the mutex held.
  void erase(uint64_t address, size_t bytes, uint64_t before);
  /// `written` as in Piece.
  void insert(uint64_t address, std::vector<char> written, size_t bytes, Origin origin);
  bool is_forgotten(const Piece& piece) const;
  /// Calls visit(address, part) for what is known of the range, in order.
  template <class Visit>
  void for_each_part(uint64_t address, size_t bytes, const Visit& visit) const;
  /// The same, and what read() returns.
  template <class Visit>
  std::optional<Origin> visit_known(uint64_t address, size_t bytes, const Visit& visit) const;
  Pieces::const_iterator first_touching(uint64_t address) const;

  std::atomic<size_t> largest_bytes_ = 0;
  mutable std::mutex mutex_;
  Pieces pieces_;
  uint64_t time_ = 0;
  uint64_t computed_since_ = 0;  // what the device made before is forgotten: not erased until met
};

}  // namespace virtual_gpu
