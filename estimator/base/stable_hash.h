// A hash that is the same in every process and on every machine: names of files are made of it.
#pragma once

#include <cstdint>
#include <string_view>

namespace estimator {

/// FNV-1a of 64 bits (RFC 9923). Another seed gives another hash.
constexpr uint64_t stable_hash(std::string_view text, uint64_t seed = 0) {
  uint64_t hash = 0xcbf29ce484222325 ^ seed;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace estimator
