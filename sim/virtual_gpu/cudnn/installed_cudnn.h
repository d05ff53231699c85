#pragma once

#include <optional>
#include <vector>

#include "sim/virtual_gpu/cudnn/descriptor.h"
#include "sim/virtual_gpu/cudnn/engine_choice.h"

namespace virtual_gpu::cudnn {

/// The engines that NVIDIA's cuDNN chooses for the graph on the GPU that is played, with their
/// workspaces. cuDNN plans without a GPU since version 9.8, if it is told the device's properties.
/// `mode` is a number of cudnnBackendHeurMode_t. Nothing if no such cuDNN lies beside torch (as pip
/// installs it), or in the folder that the environment variable ONERANK_CUDNN names, or if it has
/// no answer for the graph.
std::optional<std::vector<EngineChoice>> ask_installed_cudnn(const Node& graph, int mode);

}  // namespace virtual_gpu::cudnn
