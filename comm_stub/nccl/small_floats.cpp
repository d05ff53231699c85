#include "comm_stub/nccl/small_floats.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nccl {
namespace {

constexpr int bias(const SmallFloat& format) { return (1 << (format.exponent_bits - 1)) - 1; }

constexpr uint16_t sign_of(const SmallFloat& format) {
  return static_cast<uint16_t>(1 << (format.exponent_bits + format.fraction_bits));
}

/// Of a code that is no number.
double special(const SmallFloat& format, int magnitude) {
  const int fraction = magnitude & ((1 << format.fraction_bits) - 1);
  return fraction == 0 ? std::numeric_limits<double>::infinity()
                       : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

double decode(const SmallFloat& format, uint16_t code) {
  const int magnitude = code & (sign_of(format) - 1);
  const int one = 1 << format.fraction_bits;  // what stands before the point of normal numbers
  const int exponent = std::max(1, magnitude >> format.fraction_bits);
  const int fraction = magnitude < one ? magnitude : one + magnitude % one;
  const double value = magnitude > format.largest
                           ? special(format, magnitude)
                           : std::ldexp(fraction, exponent - bias(format) - format.fraction_bits);
  return (code & sign_of(format)) != 0 ? -value : value;
}

uint16_t encode(const SmallFloat& format, double value) {
  if (std::isnan(value)) return format.not_a_number;
  const uint16_t sign = std::signbit(value) ? sign_of(format) : uint16_t{0};
  uint16_t code = 0;
  if (std::isinf(value)) {
    code = format.overflow;
  } else if (value != 0) {
    const int smallest = 1 - bias(format);
    const int exponent = std::max(std::ilogb(value), smallest);
    // Codes of one exponent follow those of the one before, also where rounding reaches the next.
    const double steps =
        std::nearbyint(std::ldexp(std::fabs(value), format.fraction_bits - exponent));
    const double wide = std::ldexp(exponent - smallest, format.fraction_bits) + steps;
    code = wide > format.largest ? format.overflow : static_cast<uint16_t>(wide);
  }
  return static_cast<uint16_t>(code | sign);
}

}  // namespace nccl
