// Numbers that carry a tag which says where they come from.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "estimator/base/enum_names.h"
#include "estimator/base/option.h"

namespace estimator {

enum class Source { kMeasured, kSimulated, kComputed, kPublished, kAssumed, kGiven };
constexpr std::array<EnumName<Source>, 6> enum_names(Source) {
  return {{{Source::kMeasured, "measured"},
           {Source::kSimulated, "simulated"},
           {Source::kComputed, "computed"},
           {Source::kPublished, "published"},
           {Source::kAssumed, "assumed"},
           {Source::kGiven, "given"}}};
}

/// One term of a sum of memory, with its source.
struct MemoryTerm {
  std::string name;
  int64_t value_bytes = 0;
  int64_t low_bytes = 0;   ///< lower end of the band; equal to value_bytes if that is exact
  int64_t high_bytes = 0;  ///< upper end of the band; equal to value_bytes if that is exact
  Source source = Source::kComputed;
  std::string note;
};
template <class Visitor>
void visit_fields(Visitor& visit, MemoryTerm& term) {
  visit("name", term.name, "what it is");
  visit("value_bytes", term.value_bytes, "how much");
  visit("low_bytes", term.low_bytes, "at least");
  visit("high_bytes", term.high_bytes, "at most");
  visit("source", term.source, "where the number comes from");
  visit("note", term.note, "how");
}

/// A term that is known to the byte.
inline MemoryTerm exact_memory(std::string name, int64_t bytes, Source source, std::string note) {
  return {.name = std::move(name),
          .value_bytes = bytes,
          .low_bytes = bytes,
          .high_bytes = bytes,
          .source = source,
          .note = std::move(note)};
}

/// One rate from which the time of operators was computed.
struct RateTerm {
  std::string name;
  double value = 0;
  std::string unit;
  Source source = Source::kAssumed;
  std::string note;
};
template <class Visitor>
void visit_fields(Visitor& visit, RateTerm& rate) {
  visit("name", rate.name, "what it is");
  visit("value", rate.value, "how much");
  visit("unit", rate.unit, "flops_per_second, bytes_per_second, parameters_per_second or seconds");
  visit("source", rate.source, "measured, published or assumed");
  visit("note", rate.note, "where, on what, when");
}

/// Any other number, with its source.
struct TaggedNumber {
  double value = 0;
  Source source = Source::kAssumed;
  std::string note;
};
template <class Visitor>
void visit_fields(Visitor& visit, TaggedNumber& number) {
  visit("value", number.value, "the number");
  visit("source", number.source, "where it comes from");
  visit("note", number.note, "how");
}

/// The number that the plan gives or, if it gives none, `otherwise`.
inline TaggedNumber given_or(const std::optional<double>& given, const TaggedNumber& otherwise) {
  return given ? TaggedNumber{*given, Source::kGiven, "the plan"} : otherwise;
}

}  // namespace estimator
