#include "comm_stub/nccl/reductions.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace nccl {
namespace {

template <class Number>
Number reduced(Number value, ncclRedOp_t operation, int ranks) {
  if (operation == ncclSum) return static_cast<Number>(value * static_cast<Number>(ranks));
  return static_cast<Number>(std::pow(static_cast<double>(value), ranks));
}

template <class Number>
void reduce_all(char* bytes, size_t count, ncclRedOp_t operation, int ranks) {
  for (size_t at = 0; at + sizeof(Number) <= count; at += sizeof(Number)) {
    Number value;
    std::memcpy(&value, bytes + at, sizeof value);
    value = reduced(value, operation, ranks);
    std::memcpy(bytes + at, &value, sizeof value);
  }
}

/// The upper half of a float; rounded to nearest, ties to even.
void reduce_bfloat16(char* bytes, size_t count, ncclRedOp_t operation, int ranks) {
  for (size_t at = 0; at + 2 <= count; at += 2) {
    uint16_t half;
    std::memcpy(&half, bytes + at, sizeof half);
    const float value = std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
    const auto bits = std::bit_cast<uint32_t>(reduced(value, operation, ranks));
    half = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    std::memcpy(bytes + at, &half, sizeof half);
  }
}

}  // namespace

bool changes_values(ncclRedOp_t operation, int ranks) {
  return ranks > 1 && (operation == ncclSum || operation == ncclProd);
}

bool reduce_bytes(
    char* bytes, size_t count, std::string_view type, ncclRedOp_t operation, int ranks) {
  using Function = void (*)(char*, size_t, ncclRedOp_t, int);
  constexpr struct {
    std::string_view type;
    Function function;
  } kFunctions[] = {{"Char", reduce_all<int8_t>},
                    {"Byte", reduce_all<uint8_t>},
                    {"Int", reduce_all<int32_t>},
                    {"UInt32", reduce_all<uint32_t>},
                    {"Long", reduce_all<int64_t>},
                    {"UInt64", reduce_all<uint64_t>},
                    {"Float", reduce_all<float>},
                    {"Double", reduce_all<double>},
                    {"BFloat16", reduce_bfloat16}};
  for (const auto& [name, function] : kFunctions) {
    if (name != type) continue;
    function(bytes, count, operation, ranks);
    return true;
  }
  return false;
}

}  // namespace nccl
