// C++ call stacks, each kept once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sim {

/// Taking a stack is cheap next to naming its functions, which is done when it is read.
class FrameStore {
 public:
  /// The stack of the caller; equal stacks have one number.
  int32_t capture();
  /// Function names, innermost first, without what belongs to taking the stack and to the
  /// allocator: "models::Mlp::forward(at::Tensor const&) const". A function that no loaded library
  /// exports is named by its library.
  std::vector<std::string> names(int32_t stack) const;

 private:
  using Stack = std::vector<void*>;
  std::map<Stack, int32_t> numbers_;
  std::vector<const Stack*> stacks_;
};

}  // namespace sim
