#include "estimator/communication/expert_dispatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "estimator/base/database.h"
#include "estimator/base/errors.h"
#include "estimator/base/units.h"
#include "estimator/plan/drawn_experts.h"

namespace onerank_data {
extern const std::string_view expert_dispatch_json;
}  // namespace onerank_data

namespace estimator {
namespace {

enum class Over { kNvlink, kNetwork };
constexpr std::array<EnumName<Over>, 2> enum_names(Over) {
  return {{{Over::kNvlink, "nvlink"}, {Over::kNetwork, "network"}}};
}

struct DispatchRate {
  FlexBackend backend = FlexBackend::kDeepEp;
  Over over = Over::kNvlink;
  int64_t compute_capability = 0;
  double port_bytes_per_second = 0;
  int64_t ranks = 0;
  int64_t multiprocessors = 0;
  double dispatch_bytes_per_second = 0, combine_bytes_per_second = 0;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, DispatchRate& rate) {
  visit("backend", rate.backend, "whose kernels");
  visit("over", rate.over, "what bounds them");
  visit("compute_capability", rate.compute_capability, "of the GPU, times ten");
  visit("port_bytes_per_second", rate.port_bytes_per_second, "nominal, of a GPU's port or NICs");
  visit("ranks", rate.ranks, "of the group");
  visit("multiprocessors", rate.multiprocessors, "that a call used");
  visit("dispatch_bytes_per_second", rate.dispatch_bytes_per_second, "of tokens, each once");
  visit("combine_bytes_per_second", rate.combine_bytes_per_second, "the same on the way back");
  visit("source", rate.source, "where it was read");
}

struct DeepEpBuffers {
  int64_t ranks = 0;
  int64_t nvlink_tokens = 0, network_tokens = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, DeepEpBuffers& row) {
  visit("ranks", row.ranks, "of the group");
  visit("nvlink_tokens", row.nvlink_tokens, "that a channel receives at once over NVLink");
  visit("network_tokens", row.network_tokens, "the same over the network");
}

struct DispatchTables {
  std::vector<DispatchRate> rates;
  std::vector<DeepEpBuffers> deepep_buffers;
  std::string deepep_buffers_source;
};
template <class Visitor>
void visit_fields(Visitor& visit, DispatchTables& tables) {
  visit("rates", tables.rates, "as published");
  visit("deepep_buffers", tables.deepep_buffers, "of DeepEP, by ranks");
  visit("deepep_buffers_source", tables.deepep_buffers_source, "where they were read");
}

const DispatchTables& tables() {
  static const auto document =
      read_document<DispatchTables>(onerank_data::expert_dispatch_json, "expert_dispatch.json");
  return document;
}

double distance(double a, double b) { return std::abs(std::log(a / b)); }

/// That of the most alike GPU and port, of these of the most alike number of ranks, then of
/// multiprocessors.
const DispatchRate& nearest_rate(const ExpertDispatch& call,
                                 Over over,
                                 double port,
                                 const Fabric& fabric) {
  const auto ratio = [](int64_t a, int64_t b) {
    return distance(static_cast<double>(a), static_cast<double>(b));
  };
  const auto far = [&](const DispatchRate& rate) {
    const bool is_other = rate.backend != call.backend || rate.over != over;
    return std::tuple(is_other,
                      std::abs(rate.compute_capability - fabric.compute_capability),
                      distance(rate.port_bytes_per_second, port),
                      ratio(rate.ranks, call.place.ranks),
                      ratio(rate.multiprocessors, call.multiprocessors));
  };
  const auto& rates = tables().rates;
  return *std::min_element(
      rates.begin(), rates.end(), [&](const auto& a, const auto& b) { return far(a) < far(b); });
}

constexpr int64_t kFloatBytes = 4, kBf16Bytes = 2;

/// Config::get_nvl_buffer_size_hint and get_rdma_buffer_size_hint of DeepEP,
/// csrc/legacy/config.hpp.
int64_t deep_ep_bytes(const ExpertDispatch& call) {
  constexpr int64_t kPeers = 8, kMostTopk = 128, kMostScales = 128, kIndexBytes = 8, kMetaBytes = 8;
  constexpr int64_t kAlignment = 128, kIntBytes = 4, kVectorBytes = 16;
  const auto& rows = tables().deepep_buffers;
  const auto row = std::find_if(
      rows.begin(), rows.end(), [&](const auto& known) { return known.ranks == call.place.ranks; });
  if (row == rows.end()) {
    throw UserError({.what = "DeepEP has no configuration for this number of expert ranks",
                     .where = fmt::format("parallelism.expert = {}", call.place.ranks),
                     .help = "use 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 144 or 160, or "
                             "--moe-flex-dispatcher-backend hybridep"});
  }
  const int64_t channels = call.multiprocessors / 2;
  const int64_t near = std::min(row->ranks, kPeers),
                far = std::max<int64_t>(1, row->ranks / kPeers);
  const int64_t token_bytes = call.hidden_size * kBf16Bytes + kMetaBytes +
                              kMostTopk * (kIndexBytes + kFloatBytes) + kMostScales * kFloatBytes;
  const int64_t nvlink =
      channels * near * ((2 * far + 3) * kIntBytes + row->nvlink_tokens * token_bytes);
  const int64_t network =
      channels * far * 2 *
      ((2 * kPeers + 2) * kIntBytes + row->network_tokens * (token_bytes + kVectorBytes));
  return round_up(nvlink, kAlignment) + (far > 1 ? round_up(network, kAlignment) : 0);
}

/// allocate_*_buffers of HybridEP, csrc/hybrid_ep/buffer/intranode.cu and internode_doca.cu: room
/// for all tokens of all ranks, which dispatch and combine share.
int64_t hybrid_ep_bytes(const ExpertDispatch& call) {
  constexpr int64_t kScaleWidth = 128;
  const int64_t near = call.place.ranks_per_domain, domains = call.place.domains();
  const int64_t near_experts = call.experts_of_rank() * near;
  const int64_t scales = call.hidden_size / kScaleWidth * kFloatBytes;
  const int64_t token = call.hidden_size * kBf16Bytes;
  const int64_t of_all =
      call.tokens * call.place.ranks * (token + near_experts * kFloatBytes + scales);
  if (domains == 1) return of_all;
  const int64_t sent = call.tokens * (token + call.draw.experts * kFloatBytes + scales);
  const int64_t of_other_domain = 3 * (token + near_experts * kFloatBytes) + scales;
  return of_all + sent + call.tokens * (domains - 1) * of_other_domain;
}

/// Buffer.num_sms as Megatron-LM sets it, and Configurer of HybridEP, csrc/hybrid_ep/config.cuh.
int64_t usual_multiprocessors(const ExpertDispatch& call) {
  constexpr int64_t kOfDeepEp = 20, kInDomain = 24, kAcross = 8;
  if (call.backend == FlexBackend::kDeepEp) return kOfDeepEp;
  return call.place.domains() == 1 ? kInDomain : kAcross;
}

}  // namespace

double ExpertDispatch::received_tokens() const {
  return static_cast<double>(tokens * place.ranks) * chance_of_any(draw, experts_of_rank());
}

double ExpertDispatch::tokens_to_domains() const {
  const int64_t near = experts_of_rank() * place.ranks_per_domain;
  return static_cast<double>(tokens * place.domains()) * chance_of_any(draw, near);
}

bool dispatches_experts(const Plan& plan) {
  return plan.model.has_experts() &&
         plan.training.moe_token_dispatcher_type == TokenDispatcher::kFlex;
}

ExpertDispatch expert_dispatch(const Plan& plan,
                               const ParallelLayout& layout,
                               const Fabric& fabric) {
  const TrainingConfig& t = plan.training;
  ExpertDispatch call{.backend = t.moe_flex_dispatcher_backend,
                      .place = place(layout.group(GroupKind::kExpertModel, 0), fabric),
                      .tokens = plan.local_sequence() * t.micro_batch_size,
                      .hidden_size = plan.model.hidden_size,
                      .draw = draw_of(plan.model)};
  call.multiprocessors = t.moe_flex_dispatcher_num_sms.value_or(usual_multiprocessors(call));
  return call;
}

double expert_dispatch_seconds(const ExpertDispatch& call, const Fabric& fabric, bool combines) {
  const auto seconds = [&](Over over, double tokens, double port) {
    const DispatchRate& rate = nearest_rate(call, over, port, fabric);
    const double bytes = tokens * static_cast<double>(call.hidden_size * kBf16Bytes);
    const double published =
        combines ? rate.combine_bytes_per_second : rate.dispatch_bytes_per_second;
    return bytes / (published * port / rate.port_bytes_per_second);
  };
  if (call.place.domains() == 1) {
    return seconds(Over::kNvlink, call.received_tokens(), fabric.intra.nominal_bytes_per_second);
  }
  return seconds(Over::kNetwork,
                 call.tokens_to_domains(),
                 fabric.inter.nominal_bytes_per_second * fabric.nics_per_gpu);
}

int64_t expert_dispatch_buffer_bytes(const ExpertDispatch& call) {
  return call.backend == FlexBackend::kDeepEp ? deep_ep_bytes(call) : hybrid_ep_bytes(call);
}

}  // namespace estimator
