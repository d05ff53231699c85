#pragma once

#include <cstdint>

namespace nccl {

/// A binary floating point format of at most 16 bits: a sign, an exponent whose bias is half of its
/// range, and a fraction. Codes in this struct do not include the sign.
struct SmallFloat {
  int exponent_bits;
  int fraction_bits;
  uint16_t largest;   ///< the code of the largest number
  uint16_t overflow;  ///< code for larger numbers: infinity, or the largest if NCCL saturates
  uint16_t not_a_number;
};

inline constexpr SmallFloat kHalf{5, 10, 0x7bff, 0x7c00, 0x7e00};
inline constexpr SmallFloat kBFloat16{8, 7, 0x7f7f, 0x7f80, 0x7fc0};
inline constexpr SmallFloat kFloat8E4m3{4, 3, 0x7e, 0x7e, 0x7f};
inline constexpr SmallFloat kFloat8E5m2{5, 2, 0x7b, 0x7b, 0x7f};

double decode(const SmallFloat& format, uint16_t code);
/// Rounds to nearest, ties to even.
uint16_t encode(const SmallFloat& format, double value);

}  // namespace nccl
