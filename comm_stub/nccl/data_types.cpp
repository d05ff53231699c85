#include "comm_stub/nccl/data_types.h"

#include <iterator>

namespace nccl {
namespace {

// By number.
constexpr DataType kTypes[] = {
    {"Char", 1},
    {"Byte", 1},
    {"Int", 4},
    {"UInt32", 4},
    {"Long", 8},
    {"UInt64", 8},
    {"Half", 2},
    {"Float", 4},
    {"Double", 8},
    {"BFloat16", 2},
    {"Float8_e4m3fn", 1},
    {"Float8_e5m2", 1},
};

}  // namespace

const DataType* find_type(ncclDataType_t type) {
  const auto index = static_cast<size_t>(type);
  return index < std::size(kTypes) ? &kTypes[index] : nullptr;
}

}  // namespace nccl
