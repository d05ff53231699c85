#include "sim/cli/values/byte_sizes.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/base/number_text.h"
#include "estimator/base/range.h"
#include "estimator/base/text.h"
#include "estimator/hardware/hardware.h"
#include "estimator/resolve/plan_tree.h"

namespace sim {
namespace {

using estimator::Json;

constexpr std::string_view kPrefixes = "kmgt";

/// "", "b", "k", "kib" or "kb", in small letters: bytes of one; 0 when there is no such unit.
double scale_of(std::string_view unit) {
  if (unit.empty() || unit == "b") return 1;
  const std::size_t prefix = kPrefixes.find(unit.front());
  const std::string_view rest = unit.substr(1);
  if (prefix == kPrefixes.npos || !(rest.empty() || rest == "ib" || rest == "b")) return 0;
  double scale = 1;
  for (std::size_t i = 0; i <= prefix; ++i) scale *= rest == "b" ? 1000 : 1024;
  return scale;
}

/// "12.5%" of the GPU's memory, in whole bytes.
std::optional<int64_t> share_of(const estimator::Gpu* gpu, const std::string& text) {
  const auto percent =
      estimator::parse_number<double>(std::string_view(text).substr(0, text.size() - 1));
  const bool is_share = percent && *percent >= 0 && *percent < 100;
  if (!is_share || gpu == nullptr) return std::nullopt;
  return static_cast<int64_t>(*percent / 100 * static_cast<double>(gpu->memory_bytes));
}

void read_sizes_at(Json& json,
                   const std::string& path,
                   const std::string& origin,
                   const estimator::Gpu* gpu,
                   std::vector<estimator::Problem>& problems) {
  for (auto& [key, value] : json.items()) {
    const std::string below = path.empty() ? key : fmt::format("{}.{}", path, key);
    if (value.is_object()) read_sizes_at(value, below, origin, gpu, problems);
    if (!value.is_string() || !is_size(key)) continue;
    const std::string text = value.get<std::string>();
    if (const auto bytes = text.ends_with('%') ? share_of(gpu, text) : parse_bytes(text)) {
      value = *bytes;
    } else {
      problems.push_back(
          {.what = "a size is needed here",
           .where = fmt::format("{}: {} = \"{}\"", origin, below, text),
           .help = fmt::format("write bytes, or a number with {}: 10GiB; or 10% of the memory of a "
                               "GPU that the plan names",
                               kSizeUnits)});
    }
  }
}

}  // namespace

std::optional<int64_t> parse_bytes(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc()) return std::nullopt;
  const std::string unit = estimator::lower_case({*stop == ' ' ? stop + 1 : stop, end});
  const double scale = scale_of(unit);
  const double bytes = scale > 1 ? std::round(value * scale) : value;
  if (scale == 0 || !(bytes >= 0) || !estimator::is_whole(bytes)) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

bool is_size(std::string_view key) { return key.ends_with("_bytes"); }

void read_byte_sizes(Json& tree, const std::string& origin) {
  std::vector<estimator::Problem> problems;
  const Json name = estimator::find_in_tree(tree, "cluster.gpu");
  const estimator::Gpu* gpu =
      name.is_string() ? estimator::find_gpu(name.get<std::string>()) : nullptr;
  read_sizes_at(tree, "", origin, gpu, problems);
  if (!problems.empty()) throw estimator::UserError(std::move(problems));
}

}  // namespace sim
