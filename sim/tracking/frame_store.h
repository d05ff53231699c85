// Stores C++ call stacks, each only once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sim {

/// Taking a stack is cheap. Finding the names of its functions is not, and is done when it is read.
class FrameStore {
 public:
  /// Stores the stack of the caller and returns its number. Equal stacks have the same number.
  int32_t capture();
  /// Function names, innermost first, such as "models::Mlp::forward(at::Tensor const&) const",
  /// without the functions that take the stack and those of the allocator. A function that no
  /// loaded library exports is named by its library.
  std::vector<std::string> names(int32_t stack) const;

 private:
  using Stack = std::vector<void*>;
  std::map<Stack, int32_t> numbers_;
  std::vector<const Stack*> stacks_;
};

}  // namespace sim
