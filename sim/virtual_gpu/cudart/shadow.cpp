#include "sim/virtual_gpu/cudart/shadow.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace virtual_gpu {
namespace {

thread_local bool remembers_here = true;

}  // namespace

void Shadow::remember_here(bool remember) { remembers_here = remember; }

void Shadow::Piece::read(char* value) const {
  if (is_uniform()) {
    std::memset(value, written->front(), bytes);
  } else {
    std::memcpy(value, written->data() + first, bytes);
  }
}

bool Shadow::remembers(size_t bytes) const {
  return remembers_here && bytes > 0 && bytes <= largest_bytes_;
}

void Shadow::write(uint64_t address, const void* value, size_t bytes, Origin origin) {
  if (remembers(bytes)) return tell(address, value, bytes, origin);
  const std::lock_guard lock(mutex_);
  erase(address, bytes, UINT64_MAX);
}

void Shadow::tell(uint64_t address, const void* value, size_t bytes, Origin origin) {
  const std::lock_guard lock(mutex_);
  erase(address, bytes, UINT64_MAX);
  if (!remembers(1) || bytes == 0) return;
  const char* first = static_cast<const char*>(value);
  const bool is_uniform = std::memcmp(first, first + 1, bytes - 1) == 0;
  insert(address, {first, first + (is_uniform ? 1 : bytes)}, bytes, origin);
}

void Shadow::fill(uint64_t address, int value, size_t bytes) {
  const std::lock_guard lock(mutex_);
  erase(address, bytes, UINT64_MAX);
  if (remembers(bytes)) insert(address, {static_cast<char>(value)}, bytes, Origin::kDevice);
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

template <class Visit>
std::optional<Shadow::Origin> Shadow::visit_known(uint64_t address,
                                                  size_t bytes,
                                                  const Visit& visit) const {
  size_t known_bytes = 0;
  Origin origin = Origin::kDevice;
  for_each_part(address, bytes, [&](uint64_t place, const Piece& part) {
    visit(place, part);
    known_bytes += part.bytes;
    if (part.origin == Origin::kHost) origin = Origin::kHost;
  });
  return known_bytes == bytes ? std::optional(origin) : std::nullopt;
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

std::optional<Shadow::Origin> Shadow::read(uint64_t address, void* value, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  std::memset(value, 0, bytes);
  return visit_known(address, bytes, [&](uint64_t place, const Piece& part) {
    part.read(static_cast<char*>(value) + (place - address));
  });
}

std::optional<Shadow::Origin> Shadow::knows(uint64_t address, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  return visit_known(address, bytes, [](uint64_t, const Piece&) {});
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

void Shadow::insert(uint64_t address, std::vector<char> written, size_t bytes, Origin origin) {
  auto shared = std::make_shared<const std::vector<char>>(std::move(written));
  pieces_.insert_or_assign(address, Piece{std::move(shared), 0, bytes, time_++, origin});
}

Shadow::Pieces::const_iterator Shadow::first_touching(uint64_t address) const {
  auto piece = pieces_.upper_bound(address);
  if (piece == pieces_.begin()) return piece;
  const auto before = std::prev(piece);
  return before->first + before->second.bytes > address ? before : piece;
}

}  // namespace virtual_gpu
