#include "estimator/compute/deterministic_attention.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "estimator/base/contains.h"
#include "estimator/base/database.h"
#include "estimator/base/interpolate.h"

namespace onerank_data {
extern const std::string_view deterministic_attention_json;
}

namespace estimator {
namespace {

struct DeterministicCurve {
  Attention attention = Attention::kFlash;
  std::vector<std::string> gpus;
  std::vector<int64_t> sequence;
  std::vector<double> share;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, DeterministicCurve& row) {
  visit("attention", row.attention, "the plan's word for the kernel");
  visit("gpus", row.gpus, "GPUs that it is used for; the first row of a kernel for all others");
  visit("sequence", row.sequence, "tokens");
  visit("share", row.share, "rate of the deterministic backward over that of the usual one");
  visit("source", row.source, "where it was read");
}

const std::vector<DeterministicCurve>& deterministic_curves() {
  static const auto rows = read_database<DeterministicCurve>(
      onerank_data::deterministic_attention_json, "deterministic_attention.json");
  return rows;
}

double share_at(const DeterministicCurve& curve, int64_t sequence) {
  return interpolate_log(curve.sequence, curve.share, static_cast<double>(sequence));
}

}  // namespace

TaggedNumber deterministic_share(const std::string& gpu_id, Attention attention, int64_t sequence) {
  if (attention == Attention::kUnfused) return {.value = 1, .source = Source::kComputed};
  const Attention kernel = attention == Attention::kFlash1 ? Attention::kFlash : attention;
  const auto of_kernel = [&](const DeterministicCurve& row) { return row.attention == kernel; };
  const auto of_gpu = [&](const DeterministicCurve& row) {
    return of_kernel(row) && contains(row.gpus, gpu_id);
  };
  const auto found =
      std::find_if(deterministic_curves().begin(), deterministic_curves().end(), of_gpu);
  if (found != deterministic_curves().end() && kernel == attention) {
    return {
        .value = share_at(*found, sequence), .source = Source::kPublished, .note = found->source};
  }
  const auto like =
      std::find_if(deterministic_curves().begin(), deterministic_curves().end(), of_kernel);
  return {.value = share_at(*like, sequence),
          .source = Source::kAssumed,
          .note = "of another kernel or GPU, " + like->source};
}

}  // namespace estimator
