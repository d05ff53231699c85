// Writes Python's pickle format, as far as PyTorch's memory viewers read it: protocol 2 with
// dictionaries, lists, tuples, whole numbers, floats, booleans and text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace sim {

/// Writes one value by nested begin and end calls. Equal texts are written only once.
///
///     writer.begin_dict(); writer.key("a"); writer.value(1); writer.end_dict();
class PickleWriter {
 public:
  PickleWriter();

  void begin_dict();
  void key(std::string_view name) { value(name); }
  void end_dict();

  /// Items are written to a list in batches, because the viewer in JavaScript pushes a batch as the
  /// arguments of one call, of which there can be at most some 100,000. Call begin_item() before
  /// each item.
  void begin_list();
  void begin_item(std::size_t index);
  void end_list(std::size_t items);

  void value(int64_t number);
  void value(double number);
  void value(bool truth);
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void pair(int64_t first, int64_t second);

  /// Stores the value that was just written and returns a number, with which recall() writes it
  /// again.
  uint32_t remember();
  void recall(uint32_t number);

  /// Ends the value and returns the bytes.
  std::string finish() &&;

 private:
  void byte(unsigned value) { bytes_.push_back(static_cast<char>(value)); }
  void little_endian(uint64_t value, int size);

  std::string bytes_;
  std::unordered_map<std::string, uint32_t> texts_;
  uint32_t remembered_ = 0;
};

}  // namespace sim
