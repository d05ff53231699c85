// Ends the processes that a program leaves behind, also those that have left its process group.
#pragma once

namespace sim {

/// While it lives, orphaned descendants of this process become its children. When it is destroyed,
/// all children of this process are killed. There may be only one such object, and no other
/// children that must stay.
class Descendants {
 public:
  Descendants();
  ~Descendants();
  Descendants(const Descendants&) = delete;
  Descendants& operator=(const Descendants&) = delete;
};

}  // namespace sim
