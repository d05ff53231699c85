// Processes that a program leaves behind, also those that left its process group.
#pragma once

namespace sim {

/// While it lives, orphans among this process's descendants become its children; at its end all of
/// its children are killed. One at a time, with no other child to keep.
class Descendants {
 public:
  Descendants();
  ~Descendants();
  Descendants(const Descendants&) = delete;
  Descendants& operator=(const Descendants&) = delete;
};

}  // namespace sim
