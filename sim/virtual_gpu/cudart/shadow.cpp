#include "sim/virtual_gpu/cudart/shadow.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace virtual_gpu {

void Shadow::write(uint64_t address, const void* value, size_t bytes) {
  const std::lock_guard lock(mutex_);
  erase(address, bytes, UINT64_MAX);
  if (!enabled_ || bytes == 0 || bytes > kLargestBytes) return;
  const char* first = static_cast<const char*>(value);
  insert(address, {first, first + bytes});
}

void Shadow::fill(uint64_t address, int value, size_t bytes) {
  const std::lock_guard lock(mutex_);
  erase(address, bytes, UINT64_MAX);
  if (!enabled_ || bytes == 0 || bytes > kLargestBytes) return;
  insert(address, std::vector<char>(bytes, static_cast<char>(value)));
}

void Shadow::copy(uint64_t destination, uint64_t source, size_t bytes) {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<uint64_t, std::vector<char>>> copies;
  for (auto piece = first_touching(source); piece != pieces_.end() && piece->first < source + bytes;
       ++piece) {
    const uint64_t from = std::max(source, piece->first);
    const uint64_t to = std::min(source + bytes, piece->first + piece->second.bytes.size());
    const char* data = piece->second.bytes.data() + (from - piece->first);
    copies.emplace_back(destination + (from - source), std::vector<char>(data, data + (to - from)));
  }
  erase(destination, bytes, UINT64_MAX);
  for (auto& [address, content] : copies) insert(address, std::move(content));
}

bool Shadow::read(uint64_t address, void* value, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  std::memset(value, 0, bytes);
  size_t known_bytes = 0;
  for (auto piece = first_touching(address);
       piece != pieces_.end() && piece->first < address + bytes;
       ++piece) {
    const uint64_t from = std::max(address, piece->first);
    const uint64_t to = std::min(address + bytes, piece->first + piece->second.bytes.size());
    std::memcpy(static_cast<char*>(value) + (from - address),
                piece->second.bytes.data() + (from - piece->first),
                to - from);
    known_bytes += to - from;
  }
  return known_bytes == bytes;
}

uint64_t Shadow::time() const {
  const std::lock_guard lock(mutex_);
  return time_;
}

void Shadow::forget(uint64_t address, size_t bytes, uint64_t before) {
  const std::lock_guard lock(mutex_);
  erase(address, bytes, before);
}

/// A piece that is cut keeps what lies outside the range.
void Shadow::erase(uint64_t address, size_t bytes, uint64_t before) {
  const uint64_t end = address + bytes;
  const auto first_piece = first_touching(address);
  for (auto piece = pieces_.erase(first_piece, first_piece);  // erases nothing: now not const
       piece != pieces_.end() && piece->first < end;) {
    if (piece->second.time >= before) {
      ++piece;
      continue;
    }
    const uint64_t first = piece->first;
    Piece whole = std::move(piece->second);
    piece = pieces_.erase(piece);
    const uint64_t last = first + whole.bytes.size();
    if (last > end) {
      const char* tail = whole.bytes.data() + (end - first);
      pieces_.emplace(end, Piece{{tail, tail + (last - end)}, whole.time});
    }
    if (first < address) {
      whole.bytes.resize(address - first);
      pieces_.emplace(first, std::move(whole));
    }
  }
}

void Shadow::insert(uint64_t address, std::vector<char> bytes) {
  pieces_.insert_or_assign(address, Piece{std::move(bytes), time_++});
}

Shadow::Pieces::const_iterator Shadow::first_touching(uint64_t address) const {
  auto piece = pieces_.upper_bound(address);
  if (piece == pieces_.begin()) return piece;
  const auto before = std::prev(piece);
  return before->first + before->second.bytes.size() > address ? before : piece;
}

}  // namespace virtual_gpu
