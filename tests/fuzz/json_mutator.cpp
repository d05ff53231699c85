// For targets whose inputs are JSON or JSON Lines.
#include "tests/fuzz/json_mutation.h"

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                          size_t size,
                                          size_t most_bytes,
                                          unsigned seed) {
  return fuzz::mutate_json_input(data, size, most_bytes, seed);
}
