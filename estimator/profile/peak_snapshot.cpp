#include "estimator/profile/peak_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "estimator/base/document.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/profile/profile_claims.h"

namespace estimator {
namespace {

/// What header and allocations disagree about, or "".
std::string disagreement(const PeakSnapshot& snapshot) {
  const PeakSnapshotHeader& header = snapshot.header;
  const auto count = static_cast<int64_t>(snapshot.allocations.size());
  if (count != header.allocations) {
    return fmt::format("the header tells of {} allocations, {} follow", header.allocations, count);
  }
  CategoryBytes bytes;
  int64_t makers = 0;
  for (const PeakAllocation& allocation : snapshot.allocations) {
    if (bytes.sum() > static_cast<int64_t>(kBytes.most)) break;  // no sum of lines overflows
    bytes[allocation.category] += allocation.bytes;
    makers += allocation.made_the_peak ? 1 : 0;
  }
  if (bytes.sum() != header.peak.allocated_bytes) {
    return fmt::format("the allocations add up to {} bytes, the header's peak is {}",
                       bytes.sum(),
                       header.peak.allocated_bytes);
  }
  if (header.peak.categories != bytes) return "the categories do not add up to the header's";
  if (makers != 1) return fmt::format("{} allocations made the peak", makers);
  return "";
}

constexpr const char* kMakeSnapshotAgain =
    "make it again with `onerank run PLAN --peak-snapshot FILE`";

[[noreturn]] void refuse(const std::string& what, std::string where) {
  throw UserError({.what = what, .where = std::move(where), .help = kMakeSnapshotAgain});
}

/// Takes the next line off `text`.
std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

Json parse_line(std::string_view line, const std::string& place) {
  try {
    return parse_json(line, place);
  } catch (const UserError& error) {
    refuse(fmt::format("{} is damaged", place), error.problems().front().where);
  }
}

/// Another document of ours is one JSON value, over several lines.
void refuse_other_document(std::string_view text, const std::string& origin) {
  const Json whole = Json::parse(text.begin(), text.end(), nullptr, false);
  const std::string kind = PeakSnapshotHeader{}.head.kind;
  if (!whole.is_object() || !whole.contains("kind") || !whole["kind"].is_string()) return;
  if (whole["kind"] == kind) return;
  refuse(fmt::format("{} is not a peak snapshot", origin),
         fmt::format("this is a {}, not a {}", whole["kind"].get<std::string>(), kind));
}

PeakSnapshotHeader read_header(std::string_view line, const std::string& origin) {
  const std::string what = fmt::format("{} is not a peak snapshot of this version", origin);
  Json json;
  try {
    json = parse_json(line, origin);
  } catch (const UserError& error) {
    refuse(what, "line 1 is not a header in JSON: " + error.problems().front().where);
  }
  PeakSnapshotHeader header;
  check_head(json, header.head, origin, kMakeSnapshotAgain);
  FieldReader reader(origin + ", line 1", RequiredKeys::kAllButOptional);
  reader.read(json, header, "");
  report_contradictions(header.peak, "peak", reader);
  if (header.rank >= header.world_size) {
    reader.report("rank",
                  "the rank is not in its world",
                  fmt::format("{}, world size {}", header.rank, header.world_size),
                  kMakeSnapshotAgain);
  }
  reader.throw_if_any();
  return header;
}

}  // namespace

std::string to_json_lines(const PeakSnapshot& snapshot) {
  if (const std::string problem = disagreement(snapshot); !problem.empty()) {
    throw std::logic_error("a peak snapshot: " + problem);
  }
  std::string text = to_json(snapshot.header).dump() + "\n";
  for (const PeakAllocation& allocation : snapshot.allocations) {
    text += to_json(allocation).dump() + "\n";
  }
  return text;
}

PeakSnapshot read_peak_snapshot(std::string_view text, const std::string& origin) {
  PeakSnapshot snapshot;
  const bool ends_with_newline = text.ends_with('\n');
  refuse_other_document(text, origin);
  snapshot.header = read_header(next_line(text), origin);
  for (int64_t line = 2; !text.empty(); ++line) {
    const std::string place = fmt::format("{}, line {}", origin, line);
    FieldReader reader(place, RequiredKeys::kAllButOptional);
    reader.read(parse_line(next_line(text), place), snapshot.allocations.emplace_back(), "");
    reader.throw_if_any();
  }
  if (const std::string problem = disagreement(snapshot); !problem.empty()) {
    refuse(fmt::format("{} is not all of a peak snapshot", origin), problem);
  }
  if (!ends_with_newline) {
    refuse(fmt::format("{} is not all of a peak snapshot", origin), "its last line has no end");
  }
  return snapshot;
}

}  // namespace estimator
