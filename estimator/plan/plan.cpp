#include "estimator/plan/plan.h"

#include "estimator/base/fields.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/options.h"

namespace estimator {

bool Plan::fully_sharded() const {
  return parallelism.divides_gradients() && !traits_of(training.framework).deepspeed_engine;
}

bool Plan::torch_pipeline() const {
  return parallelism.pipeline > 1 && traits_of(training.framework).torch_pipeline;
}

int64_t Plan::micro_batches() const {
  return global_batch_size() / (training.micro_batch_size * data_parallel_size());
}

int64_t Plan::padded_vocab_size() const {
  return round_up(model.vocab_size, training.make_vocab_size_divisible_by * parallelism.tensor);
}

std::vector<int64_t> Plan::layers_of_virtual_stages() const {
  const int64_t chunks = parallelism.virtual_stages;
  const int64_t pieces = parallelism.pipeline * chunks;
  const std::vector<int64_t>& given = parallelism.layers_per_stage;
  if (given.empty()) return std::vector<int64_t>(pieces, model.num_layers / pieces);
  if (static_cast<int64_t>(given.size()) == pieces) return given;
  std::vector<int64_t> layers;  // given by stage: the chunks of a stage are equal
  for (int64_t piece = 0; piece < pieces; ++piece) {
    layers.push_back(given[piece % parallelism.pipeline] / chunks);
  }
  return layers;
}

int64_t Plan::virtual_stage_of_final_norm() const {
  const std::vector<int64_t> layers = layers_of_virtual_stages();
  auto piece = static_cast<int64_t>(layers.size()) - 1;
  while (model.predicts_more_tokens() && piece > 0 && layers[piece] == 0) --piece;
  return piece;
}

std::vector<int64_t> Plan::layers_of_chunks(int64_t stage) const {
  const std::vector<int64_t> all = layers_of_virtual_stages();
  std::vector<int64_t> layers;
  for (std::size_t piece = stage; piece < all.size(); piece += parallelism.pipeline) {
    layers.push_back(all[piece]);
  }
  return layers;
}

std::vector<bool> Plan::expert_layers_of_stage(int64_t stage) const {
  const std::vector<int64_t> all = layers_of_virtual_stages();
  std::vector<bool> experts;
  int64_t first = 0;
  for (std::size_t piece = 0; piece < all.size(); first += all[piece++]) {
    if (static_cast<int64_t>(piece) % parallelism.pipeline != stage) continue;
    for (int64_t i = 0; i < all[piece]; ++i) experts.push_back(model.has_experts_in(first + i));
  }
  return experts;
}

int64_t Plan::bucket_elements() const { return parallelism.bucket_elements; }

Json to_json(const Plan& plan) {
  Json model = to_json(plan.model);
  if (!plan.model_preset.empty()) {
    Json with_preset = {{"preset", plan.model_preset}};
    with_preset.update(model);
    model = std::move(with_preset);
  }
  return {{"name", plan.name},
          {"model", std::move(model)},
          {"cluster", to_json(plan.cluster)},
          {"parallelism", to_json(plan.parallelism)},
          {"training", to_json(plan.training)},
          {"memory", to_json(plan.memory)},
          {"time", to_json(plan.time)},
          {"reliability", to_json(plan.reliability)}};
}

}  // namespace estimator
