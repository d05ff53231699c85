#include "estimator/compute/compiled_kernel.h"

#include <algorithm>
#include <optional>
#include <string>

#include "estimator/base/database.h"

namespace onerank_data {
extern const std::string_view compiled_kernels_json;
}

namespace estimator {
namespace {

struct CompiledKernels {
  std::string what;
  std::vector<std::string> kinds;
  std::optional<std::vector<std::string>> words;
  double memory_share = 1;
  std::optional<double> elements_per_second;
  std::string measured_on;
  std::string source;

  bool holds_for(std::string_view name) const {
    const auto begins = [&](const std::string& kind) { return name.starts_with(kind); };
    const auto has = [&](const std::string& word) { return name.find(word) != name.npos; };
    return std::any_of(kinds.begin(), kinds.end(), begins) &&
           (!words || std::all_of(words->begin(), words->end(), has));
  }
};
template <class Visitor>
void visit_fields(Visitor& visit, CompiledKernels& row) {
  visit("what", row.what, "in words");
  visit("kinds", row.kinds, "how their names begin: pointwise, reduction, reduction of a row held");
  visit("words", row.words, "that are all in their names; empty: any");
  visit("memory_share", row.memory_share, "of the memory's rate that they reach");
  visit("elements_per_second",
        row.elements_per_second,
        "that the multiprocessors work on, of any type; empty: more than the memory gives");
  visit("measured_on", row.measured_on, "the GPU of which it is the rate");
  visit("source", row.source, "where it was read");
}

struct CompiledKernelTable {
  std::vector<CompiledKernels> rows;
};
template <class Visitor>
void visit_fields(Visitor& visit, CompiledKernelTable& table) {
  visit("compiled_kernels", table.rows, "the first row that holds counts");
}

const std::vector<CompiledKernels>& compiled_kernels() {
  static const auto table = read_document<CompiledKernelTable>(onerank_data::compiled_kernels_json,
                                                               "compiled_kernels.json");
  return table.rows;
}

}  // namespace

CompiledKernelRate compiled_kernel_rate(std::string_view name, const Gpu& gpu) {
  for (const CompiledKernels& row : compiled_kernels()) {
    if (!row.holds_for(name)) continue;
    return {.memory_share = row.memory_share,
            .elements_per_second =
                row.elements_per_second.value_or(0) * multiprocessors_over(gpu, row.measured_on)};
  }
  return {};
}

double compiled_kernel_seconds(const CompiledKernelRate& rate, const std::vector<int64_t>& sizes) {
  if (sizes.empty() || rate.elements_per_second == 0) return 0;
  double elements = 1;
  for (const int64_t size : sizes) elements *= static_cast<double>(size);
  return elements / rate.elements_per_second;
}

}  // namespace estimator
