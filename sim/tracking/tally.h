// Counts equal items.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace sim {

/// Counts how often each distinct T was added, in the order of first appearance. Adding a known T
/// copies nothing.
template <class T, class Hash>
class Tally {
 public:
  struct Entry {
    const T* item;
    int64_t count;
  };

  /// Its place among the entries.
  int64_t add(const T& item) {
    const auto [known, is_new] = index_.try_emplace(item, entries_.size());
    if (is_new) entries_.push_back({&known->first, 0});
    ++entries_[known->second].count;
    return static_cast<int64_t>(known->second);
  }

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::unordered_map<T, size_t, Hash> index_;
  std::vector<Entry> entries_;  // their items are keys of index_, which do not move
};

}  // namespace sim
