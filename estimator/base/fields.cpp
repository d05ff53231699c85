#include "estimator/base/fields.h"

#include <fmt/format.h>

#include "estimator/base/units.h"

namespace estimator {
namespace {

std::string end_text(double value) {
  return is_whole(value) ? with_commas(static_cast<int64_t>(value)) : fmt::format("{:g}", value);
}

std::string range_text(Range range) {
  return fmt::format("use a number from {} to {}{}{}",
                     end_text(range.least),
                     end_text(range.most),
                     range.example != nullptr ? ": " : "",
                     range.example != nullptr ? range.example : "");
}

}  // namespace

void FieldReader::report(const std::string& path,
                         std::string what,
                         const std::string& found,
                         std::string help) {
  if (problems_.size() >= kMostProblemsShown) {
    ++left_out_;
    return;
  }
  std::string where = origin_ + (path.empty() ? "" : ": " + path);
  if (!found.empty()) where += " = " + found;
  problems_.push_back({std::move(what), std::move(where), std::move(help)});
}

void FieldReader::throw_if_any() const {
  if (!problems_.empty()) throw UserError(and_more(problems_, left_out_));
}

void FieldReader::check_range(const Json& json, const std::string& path, Range range) {
  if (range.holds(json.get<double>())) return;
  report(path, "a number is out of range", shown(json), range_text(range));
}

}  // namespace estimator
