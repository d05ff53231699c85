// Megatron-LM's --pipeline-model-parallel-layout: what each (virtual) stage of a pipeline holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sim {

inline constexpr const char* kPipelineLayoutFlag = "--pipeline-model-parallel-layout";

/// The text of a layout without its commas and repetitions: "Et*2|(t|)*2,L" is "Ett|t|t|L". As in
/// parse_str_to_list() of megatron/core/transformer/pipeline_parallel_layer_layout.py, groups do
/// not nest. Throws UserError when the text would be longer than a million characters.
std::string unrolled_layout(const std::string& text);

/// What a layout has to hold.
struct LayoutModel {
  int64_t layers = 0;
  int64_t predictions = 0;  ///< layers of multi-token prediction
};

/// The layers of each stage (each virtual stage, in model order) of a layout of a model on a
/// multiple of `stages` stages. "E" is the embedding, "t" a layer, "m" a layer of multi-token
/// prediction, "L" the loss and "|" the end of a stage. As in Megatron-LM, the embedding comes
/// before all layers, the loss after them, and a stage may be empty; the first stage holds the
/// embedding and the last one the loss wherever the letters stand. Throws UserError for other
/// texts, and where an "m" is not on the last stage, beside the loss.
std::vector<int64_t> layers_of_layout(const std::string& text,
                                      const LayoutModel& model,
                                      int64_t stages);

}  // namespace sim
