// Changes to an input that is text, or any bytes.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/random.h"

namespace fuzz {

/// What mutations draw from besides the input itself.
struct Material {
  std::vector<std::string> words;   ///< a dictionary of what means something to the reader
  std::vector<std::string> corpus;  ///< other inputs, never empty
};

/// The words of a dictionary in libFuzzer's format: "WORD" or name="WORD" in a line each, with \\,
/// \" and \xAB for bytes. Throws std::runtime_error with the line that is something else.
std::vector<std::string> read_dictionary(const std::string& path);

/// One change: bytes flipped, added, cut out, repeated or exchanged, words of the dictionary put
/// in, a piece of another input taken over. The text has no more than `most_bytes` after it.
void mutate_text(std::string& text, size_t most_bytes, const Material& material, Random& random);

}  // namespace fuzz
