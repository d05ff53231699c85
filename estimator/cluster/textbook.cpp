#include "estimator/cluster/textbook.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "estimator/plan/adapters.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/optimizer_moments.h"
#include "estimator/schedule/pipeline_schedule.h"

namespace estimator {
namespace {

constexpr const char* kZeroPaper = "Rajbhandari et al. 2020 (ZeRO), 3.1";
constexpr const char* kShapePaper = "Narayanan et al. 2021, eq. 2";
constexpr const char* kLayerPaper = "Korthikanti et al. 2022, table 2";
constexpr const char* kFlightPaper = "Korthikanti et al. 2022, 4.2.3";
constexpr const char* kLogitsPaper = "Korthikanti et al. 2022, 4.3";
constexpr const char* kCachePaper = "Pope et al. 2022";
constexpr const char* kLatentCachePaper = "DeepSeek-AI 2024 (V2), 2.1.4";
constexpr const char* kOverheadRule = "EleutherAI 2023, Transformer Math 101";

/// What an optimizer keeps for each parameter, besides fp32 master weights.
struct MomentFormula {
  const char* name;
  int64_t bytes;
  std::optional<Optimizer> optimizer;  ///< empty if plans do not have it
  const char* source;
};
constexpr MomentFormula moments_in_plans(const char* name, Optimizer optimizer, const char* paper) {
  return {name, kMomentBytes * moments_of(optimizer, /*is_matrix=*/true), optimizer, paper};
}

constexpr std::array<MomentFormula, 4> kMoments = {
    {moments_in_plans("AdamW", Optimizer::kAdamw, kZeroPaper),
     moments_in_plans("SGD with momentum", Optimizer::kSgd, kZeroPaper),
     moments_in_plans("Muon", Optimizer::kMuon, "Jordan et al. 2024"),
     {"8-bit AdamW", 2, std::nullopt, "Dettmers et al. 2022"}}};

int64_t weight_width(const Plan& plan) { return plan.training.dtype == Dtype::kFp32 ? 4 : 2; }

double real(int64_t value) { return static_cast<double>(value); }

/// "P / (t p)", and what it is.
struct Share {
  std::string text;
  double parameters = 0;
};

int64_t expert_parameters(const ModelConfig& model) {
  const int64_t matrices = is_gated(model.activation) ? 3 : 2;
  return model.expert_layers() * model.num_experts * matrices * model.hidden_size *
         model.moe_ffn_hidden_size;
}

int64_t expert_layers_without_prediction(const ModelConfig& model) {
  int64_t layers = 0;
  for (int64_t layer = 0; layer < model.num_layers; ++layer) layers += model.has_experts_in(layer);
  return layers;
}

/// A layer has 12 h^2, of which 8 h^2 are an MLP that experts stand in for.
std::string shape_formula(const ModelConfig& model) {
  if (!model.has_experts()) return "12 l h^2 + v h";
  const int64_t layers = expert_layers_without_prediction(model);
  if (layers == model.num_layers) return "4 l h^2 + v h + experts";
  return fmt::format("(12 l - 8 x {}) h^2 + v h + experts", layers);
}

/// The product of those degrees that divide something: "P / (t p)".
std::string quotient(const std::string& of, const std::string& degrees) {
  if (degrees.empty()) return of;
  return degrees.find(' ') == std::string::npos ? of + " / " + degrees
                                                : fmt::format("{} / ({})", of, degrees);
}

/// A rank's part of `parameters` in all, called `all`, some of which may be experts'; `sharded`
/// among the data ranks, too.
Share share_of(const Plan& plan, double parameters, bool sharded, const char* all = "P") {
  const ParallelConfig& p = plan.parallelism;
  const double experts = plan.model.has_experts() ? real(expert_parameters(plan.model)) : 0;
  std::string degrees;
  const auto divide = [&](int64_t degree, const char* name) {
    if (degree > 1) degrees += (degrees.empty() ? "" : " ") + std::string(name);
  };
  divide(p.tensor, "t");
  divide(p.pipeline, "p");
  if (sharded) divide(plan.shards(), "d");
  const double of_dense = real(p.tensor * p.pipeline * (sharded ? plan.shards() : 1));
  const double of_experts = real(plan.expert_tensor_size() * p.expert * p.pipeline *
                                 (sharded ? plan.expert_shards() : 1));
  const std::string text = quotient(all, degrees);
  return {plan.model.has_experts() ? text + ", experts by theirs" : text,
          (parameters - experts) / of_dense + experts / of_experts};
}

class Book {
 public:
  Book(const Plan& plan, const RankClassEstimate& rank, const RankProfile& profile)
      : plan_(plan), rank_(rank), profile_(profile) {}

  void add_state() {
    const ParallelConfig& p = plan_.parallelism;
    const auto parameters = real(held_parameter_count(plan_));
    const auto trained = real(trained_parameter_count(plan_));
    const char* const name = plan_.training.has_adapters() ? "A" : "P";  // of the adapters alone
    const int64_t width = weight_width(plan_);
    const Share weights = share_of(plan_, parameters, p.zero_stage >= 3);
    const Share gradients = share_of(plan_, trained, p.divides_gradients(), name);
    const Share updated = share_of(plan_, trained, p.zero_stage >= 1, name);
    add_by_shape(width);
    add_for_each("weights", width, weights, &ModelStateRecord::parameter_bytes);
    add_for_each("gradients", width, gradients, &ModelStateRecord::gradient_bytes);
    if (plan_.training.dtype != Dtype::kFp32) {
      add_for_each("master weights", 4, updated, &ModelStateRecord::master_weight_bytes);
    }
    for (const MomentFormula& moment : kMoments) add_moments(moment, updated);
  }

  void add_logits() {
    if (rank_.coordinate.pipeline + 1 != plan_.parallelism.pipeline) return;
    logits_ = 4 * rows() * samples() * real(plan_.padded_vocab_size()) / tensor_;
    add({.name = "logits in fp32",
         .formula = of_ranks("4 s b v", kDivided),
         .bytes = std::llround(logits_),
         .executed_bytes = std::nullopt,
         .source = kLogitsPaper});
  }

  /// What is executed is not known by layers, so the last stage's has the logits, too.
  void add_activations() {
    const std::vector<int64_t> chunks = plan_.layers_of_chunks(rank_.coordinate.pipeline);
    const char* const logits = logits_ > 0 ? " + logits" : "";
    add({.name = "activations of one forward",
         .formula = fmt::format("{} x {} layers{}", layer_.text, chunks.back(), logits),
         .bytes = std::llround(layer_bytes() * real(chunks.back()) + logits_),
         .executed_bytes = profile_.micro_batches.activation_bytes,
         .source = kLayerPaper});
    const int64_t held = forwards_in_flight(schedule_shape(plan_), rank_.coordinate.pipeline);
    const double layers = real(std::accumulate(chunks.begin(), chunks.end(), int64_t{0})) /
                          real(static_cast<int64_t>(chunks.size()));
    add_to_total({.name = "activations held at once",
                  .formula = fmt::format("forwards in flight: {}{}", held, logits),
                  .bytes = std::llround(layer_bytes() * layers * real(held) + logits_),
                  .executed_bytes = of_peak(MemoryCategory::kActivation),
                  .source = kFlightPaper});
    const bool keeps = plan_.training.attention == Attention::kUnfused;
    add({.name = "attention scores of a layer",
         .formula = of_ranks("5 a b s^2", kDivided) +
                    (keeps ? ", in the activations" : ", of which flash attention keeps none"),
         .bytes = std::llround(5 * score_count(plan_)),
         .executed_bytes = std::nullopt,
         .source = kLayerPaper});
  }

  void add_totals() {
    add({.name = "all of it",
         .formula = "weights + gradients + optimizer + activations held",
         .bytes = total_,
         .executed_bytes = rank_.allocated_peak_bytes,
         .source = ""});
    add({.name = "with overhead",
         .formula = "1.2 x all of it; a rule for inference",
         .bytes = std::llround(1.2 * real(total_)),
         .executed_bytes = rank_.total_bytes,
         .source = kOverheadRule});
  }

  void add_cache(int64_t tokens) {
    const ModelConfig& model = plan_.model;
    const double of_token = model.multi_latent_attention
                                ? real(model.kv_lora_rank + model.qk_pos_emb_head_dim)
                                : 2 * key_heads() * real(model.kv_channels);
    const double layers = real(model.num_layers) / real(plan_.parallelism.pipeline);
    add({.name = fmt::format("keys and values of {} tokens", tokens),
         .formula = fmt::format("{} x bytes x layers x tokens x b",
                                model.multi_latent_attention ? "(latent + rotary width)"
                                                             : "2 x key heads x their width"),
         .bytes =
             std::llround(of_token * real(weight_width(plan_)) * layers * real(tokens) * samples()),
         .executed_bytes = std::nullopt,
         .source = model.multi_latent_attention ? kLatentCachePaper : kCachePaper});
  }

  std::vector<TextbookTerm> terms() && { return std::move(terms_); }

 private:
  /// Bytes of one layer and micro-batch over s b h, and how the paper writes them.
  struct LayerFormula {
    double of_sbh = 0;
    std::string text;
  };

  /// Whether tensor ranks divide what a formula says of a sequence.
  enum AmongTensorRanks { kWhole, kDivided };

  /// The formula over the ranks among which a sequence is divided: "4 s b v / (t c)".
  std::string of_ranks(const std::string& formula, AmongTensorRanks among) const {
    std::string ranks = among == kDivided ? "t" : "";
    if (plan_.parallelism.context > 1) ranks += ranks.empty() ? "c" : " c";
    return quotient(formula, ranks);
  }

  void add(TextbookTerm term) { terms_.push_back(std::move(term)); }
  void add_to_total(TextbookTerm term) {
    total_ += term.bytes;
    add(std::move(term));
  }

  void add_by_shape(int64_t width) {
    const ModelConfig& model = plan_.model;
    const int64_t h = model.hidden_size, with_experts = expert_layers_without_prediction(model);
    const Share share = share_of(
        plan_,
        real((12 * model.num_layers - 8 * with_experts) * h * h + plan_.padded_vocab_size() * h) +
            (model.has_experts() ? real(expert_parameters(model)) : 0),
        plan_.parallelism.zero_stage >= 3);
    add({.name = "weights, from the shape alone",
         .formula = fmt::format("{} x {}, P = {}", width, share.text, shape_formula(model)),
         .bytes = std::llround(real(width) * share.parameters),
         .executed_bytes = state_of(&ModelStateRecord::parameter_bytes),
         .source = kShapePaper});
  }

  void add_for_each(const char* name,
                    int64_t bytes,
                    const Share& share,
                    int64_t ModelStateRecord::*executed) {
    add_to_total({.name = name,
                  .formula = fmt::format("{} x {}", bytes, share.text),
                  .bytes = std::llround(real(bytes) * share.parameters),
                  .executed_bytes = state_of(executed),
                  .source = kZeroPaper});
  }

  void add_moments(const MomentFormula& moment, const Share& share) {
    const bool is_plans = moment.optimizer == plan_.training.optimizer;
    const int64_t bytes =
        is_plans ? moment.bytes / kMomentBytes * moment_bytes(plan_.training) : moment.bytes;
    TextbookTerm term{.name = fmt::format("moments of {}", moment.name),
                      .formula = fmt::format("{} x {}", bytes, share.text),
                      .bytes = std::llround(real(bytes) * share.parameters),
                      .executed_bytes = std::nullopt,
                      .source = moment.source};
    if (!is_plans) return add(std::move(term));
    term.executed_bytes = state_of(&ModelStateRecord::optimizer_state_bytes);
    add_to_total(std::move(term));
  }

  std::optional<int64_t> state_of(int64_t ModelStateRecord::*bytes) const {
    if (!profile_.model_state) return std::nullopt;
    return (*profile_.model_state).*bytes;
  }

  std::optional<int64_t> of_peak(MemoryCategory category) const {
    if (!rank_.peak_categories) return std::nullopt;
    return (*rank_.peak_categories)[category];
  }

  LayerFormula layer_formula() const {
    if (plan_.training.recompute != Recompute::kFull) return kept_formula();
    const bool divided =
        plan_.parallelism.sequence_parallel || plan_.training.distribute_saved_activations;
    LayerFormula input = {2 / (divided ? tensor_ : 1),
                          of_ranks("2 s b h", divided ? kDivided : kWhole)};
    const int64_t number = plan_.training.recompute_num_layers;
    const int64_t layers = layers_of_chunk();
    if (plan_.training.recompute_method == RecomputeMethod::kBlock) return in_block(input);
    if (number == 1) return input;
    const int64_t checkpoints = (layers + number - 1) / number;
    return {input.of_sbh * real(checkpoints) / real(layers),
            fmt::format("{} x {} / {}", checkpoints, input.text, layers)};
  }

  int64_t layers_of_chunk() const {
    return std::max<int64_t>(1, plan_.layers_of_chunks(rank_.coordinate.pipeline).back());
  }

  /// The mean of the layers of a chunk, of which the first ones keep their input alone.
  LayerFormula in_block(const LayerFormula& input) const {
    const int64_t layers = layers_of_chunk();
    const int64_t again = recomputed_layers(plan_.training, layers);
    const LayerFormula kept = kept_formula();
    return {(real(again) * input.of_sbh + real(layers - again) * kept.of_sbh) / real(layers),
            fmt::format(
                "({} x {} + {} x {}) / {}", again, input.text, layers - again, kept.text, layers)};
  }

  LayerFormula kept_formula() const {
    const bool in_sequence = plan_.parallelism.sequence_parallel;
    const bool has_scores = keeps_scores(plan_);
    const double scores = has_scores
                              ? 5 * real(plan_.model.num_attention_heads) *
                                    real(plan_.sequence_length()) / real(plan_.model.hidden_size)
                              : 0;
    const std::string whole = has_scores ? "s b h (34 + 5 a s / h)" : "34 s b h";
    if (in_sequence) return {(34 + scores) / tensor_, of_ranks(whole, kDivided)};
    if (tensor_ == 1) return {34 + scores, of_ranks(whole, kWhole)};
    const char* const divided =
        has_scores ? "s b h (10 + (24 + 5 a s / h) / t)" : "s b h (10 + 24 / t)";
    return {10 + (24 + scores) / tensor_, of_ranks(divided, kWhole)};
  }

  double layer_bytes() const {
    return rows() * samples() * real(plan_.model.hidden_size) * layer_.of_sbh;
  }

  double samples() const { return real(plan_.training.micro_batch_size); }
  double rows() const { return real(plan_.sequence_length()) / real(plan_.parallelism.context); }
  double key_heads() const { return std::max(1.0, real(plan_.model.num_query_groups) / tensor_); }

  const Plan& plan_;
  const RankClassEstimate& rank_;
  const RankProfile& profile_;
  double tensor_ = real(plan_.parallelism.tensor);
  LayerFormula layer_ = layer_formula();
  double logits_ = 0;  ///< of one forward of the rank
  int64_t total_ = 0;
  std::vector<TextbookTerm> terms_;
};

}  // namespace

double score_count(const Plan& plan) {
  const double s = real(plan.sequence_length());
  return real(plan.model.num_attention_heads * plan.training.micro_batch_size) * s * s /
         real(plan.parallelism.tensor * plan.parallelism.context);
}

bool keeps_scores(const Plan& plan) {
  // The first layers of a chunk may be recomputed, and the last ones kept.
  const std::vector<int64_t> chunks = plan.layers_of_virtual_stages();
  const Recomputed again =
      recomputed(plan, {.of_chunk = *std::max_element(chunks.begin(), chunks.end()) - 1});
  const bool keeps_attention =
      again == Recomputed::kNothing ||
      (again == Recomputed::kModules && !recomputes(plan, RecomputeModule::kCoreAttention));
  return plan.training.attention == Attention::kUnfused && keeps_attention;
}

std::vector<TextbookTerm> textbook_terms(const Plan& plan,
                                         const RankClassEstimate& rank,
                                         const RankProfile& profile,
                                         std::optional<int64_t> decode_tokens) {
  Book book(plan, rank, profile);
  book.add_state();
  book.add_logits();
  book.add_activations();
  book.add_totals();
  if (decode_tokens) book.add_cache(*decode_tokens);
  return std::move(book).terms();
}

}  // namespace estimator
