#include "estimator/plan/dealt_parameters.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "estimator/plan/optimizer_moments.h"

namespace estimator {
namespace {

/// Collects what one tensor rank holds of a stage.
class StageParameters {
 public:
  explicit StageParameters(const Plan& plan) : plan_(plan), model_(plan.model) {}

  void add_embedding() {
    add_words();
    if (model_.position_embedding == PositionEmbedding::kLearnedAbsolute) {
      add_matrix(model_.max_position_embeddings * model_.hidden_size);
    }
  }

  /// The rows of the embedding or of the output layer.
  void add_words() { add(plan_.padded_vocab_size() / tensor() * model_.hidden_size, false); }

  void add_output_bias() { add(plan_.padded_vocab_size() / tensor(), false); }

  void add_norm(int64_t width) {
    if (model_.norms_have_weights()) add(width, false);
    if (model_.norms_have_biases()) add(width, false);
  }

  /// Those before and after attention, or before and after the MLP.
  void add_norms_of_half() {
    if (model_.has_norms_before()) add_norm(model_.hidden_size);
    if (model_.has_norms_after()) add_norm(model_.hidden_size);
  }

  void add_layer(int64_t layer) {
    add_norms_of_half();
    if (model_.multi_latent_attention) {
      add_latent_attention();
    } else {
      add_attention();
    }
    if (!model_.tied_layernorm) add_norms_of_half();
    if (model_.has_experts_in(layer)) {
      add_experts();
    } else {
      add_mlp(model_.ffn_hidden_size);
    }
  }

  /// A layer of multi-token prediction.
  void add_prediction(int64_t layer) {
    for (int norm = 0; norm < 2; ++norm) add_norm(model_.hidden_size);
    add_matrix(2 * model_.hidden_size * model_.hidden_size / tensor());
    add_layer(layer);
    add_norm(model_.hidden_size);
  }

  std::vector<ParameterSize> take() { return std::move(parameters_); }

 private:
  int64_t tensor() const { return plan_.parallelism.tensor; }
  void add(int64_t elements, bool of_muon) { parameters_.push_back({elements, of_muon, false}); }
  void add_matrix(int64_t elements) { add(elements, true); }
  void add_bias(int64_t elements, bool present) {
    if (present) add(elements, false);
  }

  void add_attention() {
    const int64_t query = model_.num_attention_heads * model_.kv_channels;
    const int64_t packed = query + 2 * model_.num_query_groups * model_.kv_channels;
    add_matrix(packed / tensor() * model_.hidden_size);
    add_bias(packed / tensor(), model_.has_qkv_bias());
    add_matrix(query / tensor() * model_.hidden_size);
    add_bias(model_.hidden_size, model_.has_projection_bias());
    add_bias(model_.num_attention_heads / tensor(), model_.has_sinks());
    if (!model_.qk_layernorm) return;
    add_norm(model_.query_norm_width());
    add_norm(model_.key_norm_width());
  }

  /// Each tensor rank has the whole down projections.
  void add_latent_attention() {
    const int64_t heads = model_.num_attention_heads / tensor();
    const int64_t query_inputs = model_.q_lora_rank > 0 ? model_.q_lora_rank : model_.hidden_size;
    add_matrix(heads * model_.v_head_dim * model_.hidden_size);
    add_bias(model_.hidden_size, model_.has_projection_bias());
    if (model_.q_lora_rank > 0) add_latent(model_.q_lora_rank, model_.q_lora_rank);
    add_matrix(query_inputs * heads * model_.key_width());
    add_latent(model_.kv_lora_rank + model_.qk_pos_emb_head_dim, model_.kv_lora_rank);
    add_matrix(model_.kv_lora_rank * heads * (model_.qk_head_dim + model_.v_head_dim));
  }

  void add_latent(int64_t width, int64_t norm_width) {
    add_matrix(model_.hidden_size * width);
    if (model_.qk_layernorm) add_norm(norm_width);
  }

  int64_t first_width(int64_t width) const { return width * (is_gated(model_.activation) ? 2 : 1); }

  void add_mlp(int64_t width) {
    add_matrix(first_width(width) / tensor() * model_.hidden_size);
    add_bias(first_width(width) / tensor(), model_.has_mlp_bias());
    add_matrix(width / tensor() * model_.hidden_size);
    add_bias(model_.hidden_size, model_.has_mlp_bias());
  }

  void add_experts() {
    add_matrix(model_.num_experts * model_.hidden_size);
    add_bias(model_.num_experts, model_.has_mlp_bias());
    const int64_t ranks = plan_.expert_tensor_size();
    const int64_t first = first_width(model_.moe_ffn_hidden_size), h = model_.hidden_size;
    for (int64_t expert = 0; expert < plan_.experts_of_rank(); ++expert) {
      for (const int64_t width : {first, model_.moe_ffn_hidden_size}) {
        parameters_.push_back({width / ranks * h, true, true});
      }
      if (!model_.has_mlp_bias()) continue;
      for (const int64_t bias : {first / ranks, h}) parameters_.push_back({bias, false, true});
    }
    const int64_t shared = model_.moe_shared_expert_intermediate_size;
    if (shared > 0) add_mlp(shared);
  }

  const Plan& plan_;
  const ModelConfig& model_;
  std::vector<ParameterSize> parameters_;
};

/// The output layer, or what stands for it where it is tied (see models/pipeline/model_chunk.cpp).
void add_output(const Plan& plan, bool has_embedding, bool is_first, StageParameters& parameters) {
  const bool is_the_embedding = plan.model.tie_embeddings && has_embedding && is_first;
  if (!is_the_embedding) parameters.add_words();
  if (plan.model.add_output_bias) parameters.add_output_bias();
}

/// Bytes of fp32 weights, which bf16 needs beside its own, and of moments.
int64_t state_bytes(const Plan& plan, const ParameterSize& parameter) {
  const int64_t weight = plan.training.dtype == Dtype::kFp32 ? 0 : 4;
  const int64_t moments = moments_of(plan.training.optimizer, parameter.of_muon);
  return parameter.elements * (weight + moments * moment_bytes(plan.training));
}

/// Of each data rank among which `parameters` are dealt.
std::vector<int64_t> bytes_of_owners(const Plan& plan,
                                     std::vector<ParameterSize> parameters,
                                     int64_t ranks) {
  std::stable_sort(parameters.begin(), parameters.end(), [](const auto& a, const auto& b) {
    return a.elements < b.elements;
  });
  std::vector<int64_t> bytes(ranks, 0);
  for (std::size_t turn = 0; turn < parameters.size(); ++turn) {
    bytes[owner_in_turn(static_cast<int64_t>(turn), ranks)] += state_bytes(plan, parameters[turn]);
  }
  return bytes;
}

/// State of the parameters that each rank of a stage owns.
class OwnedBytes {
 public:
  OwnedBytes(const Plan& plan, int64_t stage) {
    std::vector<ParameterSize> shared = parameters_of_stage(plan, stage), experts;
    if (experts_are_apart(plan)) {
      const auto is_expert = [](const ParameterSize& parameter) { return parameter.expert; };
      std::copy_if(shared.begin(), shared.end(), std::back_inserter(experts), is_expert);
      std::erase_if(shared, is_expert);
    }
    of_shared_ = bytes_of_owners(plan, std::move(shared), plan.replicas());
    of_experts_ = bytes_of_owners(plan, std::move(experts), plan.expert_replicas());
  }

  int64_t of_rank(const ParallelLayout& layout, int64_t rank) const {
    const auto index = [&](GroupKind kind) { return layout.group(kind, rank).index_of(rank); };
    return of_shared_[index(GroupKind::kDataContext)] + of_experts_[index(GroupKind::kExpertData)];
  }

 private:
  std::vector<int64_t> of_shared_, of_experts_;
};

std::vector<int64_t> ranks_of_stage(const Plan& plan, const ParallelLayout& layout, int64_t stage) {
  std::vector<int64_t> ranks;
  RankCoordinate place{.pipeline = stage};
  for (place.data = 0; place.data < plan.data_parallel_size(); ++place.data) {
    for (place.context = 0; place.context < plan.parallelism.context; ++place.context) {
      for (place.tensor = 0; place.tensor < plan.parallelism.tensor; ++place.tensor) {
        ranks.push_back(layout.rank(place));
      }
    }
  }
  return ranks;
}

}  // namespace

bool deals_parameters_in_turn(const Plan& plan) {
  return plan.training.optimizer == Optimizer::kMuon && plan.parallelism.zero_stage > 0 &&
         !plan.parallelism.use_layer_wise_param_layout;
}

bool experts_are_apart(const Plan& plan) {
  return plan.parallelism.expert > 1 || plan.expert_tensor_size() != plan.parallelism.tensor;
}

std::vector<ParameterSize> parameters_of_stage(const Plan& plan, int64_t stage) {
  const std::vector<int64_t> layers = plan.layers_of_virtual_stages();
  const bool is_first = stage == 0, is_last = stage == plan.parallelism.pipeline - 1;
  const bool has_embedding = is_first || (is_last && plan.model.predicts_more_tokens());
  StageParameters parameters(plan);
  if (has_embedding) parameters.add_embedding();
  const int64_t first = std::accumulate(layers.begin(), layers.begin() + stage, int64_t{0});
  for (int64_t layer = 0; layer < layers[stage]; ++layer) parameters.add_layer(first + layer);
  if (stage == plan.virtual_stage_of_final_norm()) parameters.add_norm(plan.model.hidden_size);
  if (!is_last) return parameters.take();
  for (int64_t depth = 0; depth < plan.model.mtp_num_layers; ++depth) {
    parameters.add_prediction(plan.model.num_layers + depth);
  }
  add_output(plan, has_embedding, is_first, parameters);
  return parameters.take();
}

std::vector<int64_t> ranks_that_own_most(const Plan& plan, int64_t stage) {
  const ParallelLayout layout(plan.parallelism);
  const OwnedBytes owned(plan, stage);
  std::vector<int64_t> ranks;
  int64_t most = -1;
  for (const int64_t rank : ranks_of_stage(plan, layout, stage)) {
    const int64_t bytes = owned.of_rank(layout, rank);
    if (bytes < most) continue;
    if (bytes > most) ranks.clear();
    most = bytes;
    ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace estimator
