#include "comm_stub/nccl/device_reductions.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

#include "comm_stub/nccl/small_floats.h"

namespace nccl {
namespace {

double reduced(double value, const Reduction& reduction) {
  return reduction.operation == ncclProd ? std::pow(value, reduction.ranks)
                                         : value * reduction.ranks;
}

/// Wraps around, as the device does.
uint64_t reduced(uint64_t value, const Reduction& reduction) {
  const auto ranks = static_cast<uint64_t>(reduction.ranks);
  if (reduction.operation != ncclProd) return value * ranks;
  uint64_t product = 1;
  for (uint64_t left = ranks; left > 0; left /= 2, value *= value) {
    if (left % 2 == 1) product *= value;
  }
  return product;
}

template <class Number>
Number reduce_whole(Number value, const Reduction& reduction) {
  const auto factor = static_cast<uint64_t>(static_cast<int64_t>(reduction.factor));
  return static_cast<Number>(reduced(static_cast<uint64_t>(value) * factor, reduction));
}

template <class Number>
Number reduce_float(Number value, const Reduction& reduction) {
  const auto scaled = static_cast<Number>(value * reduction.factor);
  return static_cast<Number>(reduced(static_cast<double>(scaled), reduction));
}

template <class Code, const SmallFloat& kFormat>
Code reduce_small(Code code, const Reduction& reduction) {
  const uint16_t scaled = encode(kFormat, decode(kFormat, code) * reduction.factor);
  return static_cast<Code>(encode(kFormat, reduced(decode(kFormat, scaled), reduction)));
}

template <class Number>
Number load(const char* bytes) {
  Number value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class Number, Number (*kReduce)(Number, const Reduction&)>
void reduce_all(char* bytes, size_t count, const Reduction& reduction) {
  for (size_t at = 0; at + sizeof(Number) <= count; at += sizeof(Number)) {
    const Number value = kReduce(load<Number>(bytes + at), reduction);
    std::memcpy(bytes + at, &value, sizeof value);
  }
}

/// What is done with the numbers of one type.
struct Arithmetic {
  std::string_view type;  // c10's name
  void (*reduce)(char*, size_t, const Reduction&);
  double (*read)(const char*);
};

template <class Number, Number (*kReduce)(Number, const Reduction&)>
constexpr Arithmetic of_numbers(std::string_view type) {
  return {type, reduce_all<Number, kReduce>, [](const char* bytes) {
            return static_cast<double>(load<Number>(bytes));
          }};
}

template <class Code, const SmallFloat& kFormat>
constexpr Arithmetic of_codes(std::string_view type) {
  return {type, reduce_all<Code, reduce_small<Code, kFormat>>, [](const char* bytes) {
            return decode(kFormat, load<Code>(bytes));
          }};
}

constexpr Arithmetic kArithmetics[] = {of_numbers<int8_t, reduce_whole<int8_t>>("Char"),
                                       of_numbers<uint8_t, reduce_whole<uint8_t>>("Byte"),
                                       of_numbers<int32_t, reduce_whole<int32_t>>("Int"),
                                       of_numbers<uint32_t, reduce_whole<uint32_t>>("UInt32"),
                                       of_numbers<int64_t, reduce_whole<int64_t>>("Long"),
                                       of_numbers<uint64_t, reduce_whole<uint64_t>>("UInt64"),
                                       of_codes<uint16_t, kHalf>("Half"),
                                       of_numbers<float, reduce_float<float>>("Float"),
                                       of_numbers<double, reduce_float<double>>("Double"),
                                       of_codes<uint16_t, kBFloat16>("BFloat16"),
                                       of_codes<uint8_t, kFloat8E4m3>("Float8_e4m3fn"),
                                       of_codes<uint8_t, kFloat8E5m2>("Float8_e5m2")};

const Arithmetic& arithmetic_of(const DataType& type) {
  const auto* found =
      std::find_if(std::begin(kArithmetics), std::end(kArithmetics), [&](const Arithmetic& known) {
        return known.type == type.name;
      });
  if (found == std::end(kArithmetics)) std::abort();  // a row is missing above
  return *found;
}

}  // namespace

bool changes_values(const Reduction& reduction) {
  const bool adds = reduction.operation == ncclSum || reduction.operation == ncclProd;
  return (adds && reduction.ranks > 1) || reduction.factor != 1;
}

void reduce_bytes(char* bytes, size_t count, const DataType& type, const Reduction& reduction) {
  arithmetic_of(type).reduce(bytes, count, reduction);
}

double number_at(const char* bytes, const DataType& type) {
  return arithmetic_of(type).read(bytes);
}

}  // namespace nccl
