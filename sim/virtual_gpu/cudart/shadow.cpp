#include "sim/virtual_gpu/cudart/shadow.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace virtual_gpu {
namespace {

thread_local bool remembers_here = true;

}  // namespace

void Shadow::remember_here(bool remember) { remembers_here = remember; }

bool Shadow::remembers() const { return enabled_ && remembers_here; }

void Shadow::write(uint64_t address, const void* value, size_t bytes, Origin origin) {
  const std::lock_guard lock(mutex_);
  erase(address, bytes, UINT64_MAX);
  if (!remembers() || bytes == 0 || bytes > kLargestBytes) return;
  const char* first = static_cast<const char*>(value);
  insert(address, {first, first + bytes}, origin);
}

void Shadow::fill(uint64_t address, int value, size_t bytes) {
  const std::lock_guard lock(mutex_);
  erase(address, bytes, UINT64_MAX);
  if (!remembers() || bytes == 0 || bytes > kLargestBytes) return;
  insert(address, std::vector<char>(bytes, static_cast<char>(value)), Origin::kDevice);
}

template <class Visit>
void Shadow::for_each_part(uint64_t address, size_t bytes, const Visit& visit) const {
  const uint64_t end = address + bytes;
  for (auto next = first_touching(address); next != pieces_.end() && next->first < end; ++next) {
    const auto& [place, piece] = *next;
    if (is_forgotten(piece)) continue;
    const uint64_t from = std::max(address, place);
    visit(from, piece.part(from - place, std::min(end, place + piece.bytes) - from));
  }
}

void Shadow::copy(uint64_t destination, uint64_t source, size_t bytes) {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<uint64_t, Piece>> copies;
  for_each_part(source, bytes, [&](uint64_t place, Piece part) {
    part.time = time_++;
    copies.emplace_back(destination + (place - source), std::move(part));
  });
  erase(destination, bytes, UINT64_MAX);
  for (auto& [place, part] : copies) pieces_.insert_or_assign(place, std::move(part));
}

bool Shadow::read(uint64_t address, void* value, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  std::memset(value, 0, bytes);
  size_t known_bytes = 0;
  for_each_part(address, bytes, [&](uint64_t place, const Piece& part) {
    std::memcpy(static_cast<char*>(value) + (place - address), part.data(), part.bytes);
    known_bytes += part.bytes;
  });
  return known_bytes == bytes;
}

bool Shadow::knows(uint64_t address, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  size_t known_bytes = 0;
  for_each_part(address, bytes, [&](uint64_t, const Piece& part) { known_bytes += part.bytes; });
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

void Shadow::forget_computed() {
  const std::lock_guard lock(mutex_);
  computed_since_ = time_;
}

bool Shadow::is_forgotten(const Piece& piece) const {
  return piece.origin == Origin::kDevice && piece.time < computed_since_;
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
    const Piece whole = std::move(piece->second);
    piece = pieces_.erase(piece);
    const uint64_t last = first + whole.bytes;
    if (last > end) pieces_.emplace(end, whole.part(end - first, last - end));
    if (first < address) pieces_.emplace(first, whole.part(0, address - first));
  }
}

void Shadow::insert(uint64_t address, std::vector<char> bytes, Origin origin) {
  const size_t count = bytes.size();
  auto written = std::make_shared<const std::vector<char>>(std::move(bytes));
  pieces_.insert_or_assign(address, Piece{std::move(written), 0, count, time_++, origin});
}

Shadow::Pieces::const_iterator Shadow::first_touching(uint64_t address) const {
  auto piece = pieces_.upper_bound(address);
  if (piece == pieces_.begin()) return piece;
  const auto before = std::prev(piece);
  return before->first + before->second.bytes > address ? before : piece;
}

}  // namespace virtual_gpu
