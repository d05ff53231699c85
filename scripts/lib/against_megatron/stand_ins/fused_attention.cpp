// Stands in for TransformerEngine's cuDNN attention on the virtual GPU: it asks its caller for the
// tensors that nvte_fused_attn_fwd of 2.17 asks for (the fp32 statistics of the softmax,
// [b, h, s, 1], the random state, and the place of the sinks that it was given) and for a workspace
// of one byte, since cuDNN's are not public. All other allocations are TransformerEngine's own.
#include <transformer_engine/fused_attn.h>
#include <transformer_engine/transformer_engine.h>

#include <cstddef>
#include <initializer_list>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

void set_shape(NVTETensor tensor, NVTEDType type, std::initializer_list<std::size_t> dims) {
  NVTEBasicTensor basic{nullptr, type, {}};
  basic.shape.ndim = dims.size();
  std::size_t i = 0;
  for (const std::size_t dim : dims) basic.shape.data[i++] = dim;
  nvte_set_tensor_param_v2(tensor, kNVTERowwiseData, &basic, sizeof(basic));
}

}  // namespace

EXPORTED NVTE_Fused_Attn_Backend nvte_get_fused_attn_backend(bool,
                                                             NVTEDType query,
                                                             NVTEDType,
                                                             NVTE_QKV_Layout,
                                                             NVTE_Bias_Type,
                                                             NVTE_Mask_Type,
                                                             NVTE_Softmax_Type,
                                                             float,
                                                             std::size_t,
                                                             std::size_t,
                                                             std::size_t,
                                                             std::size_t,
                                                             std::size_t,
                                                             std::size_t,
                                                             int64_t,
                                                             int64_t,
                                                             bool,
                                                             bool,
                                                             bool) {
  const bool in_8_bits = query == kNVTEFloat8E4M3 || query == kNVTEFloat8E5M2;
  return in_8_bits ? NVTE_FP8 : NVTE_F16_arbitrary_seqlen;
}

EXPORTED void nvte_fused_attn_fwd(const NVTETensor query,
                                  const NVTETensor,
                                  const NVTETensor,
                                  const NVTETensor,
                                  const NVTETensor,
                                  NVTETensor,
                                  NVTETensor,
                                  NVTETensorPack* kept,
                                  const NVTETensor sequence_ends,
                                  const NVTETensor,
                                  const NVTETensor,
                                  const NVTETensor,
                                  const NVTETensor,
                                  const NVTETensor,
                                  const NVTETensor,
                                  std::size_t longest_query,
                                  std::size_t,
                                  bool,
                                  bool return_max_logit,
                                  bool,
                                  float,
                                  float,
                                  NVTE_QKV_Layout,
                                  NVTE_QKV_Format,
                                  NVTE_QKV_Format,
                                  NVTE_Bias_Type,
                                  NVTE_Mask_Type,
                                  NVTE_Softmax_Type softmax,
                                  int64_t,
                                  int64_t,
                                  bool,
                                  NVTETensor workspace,
                                  cudaStream_t) {
  if (kept->size != 0) return;  // the second call: all are there
  const NVTEShape shape = nvte_tensor_shape(query);
  const std::size_t batch = nvte_tensor_shape(sequence_ends).data[0] - 1;
  const std::size_t heads = shape.data[shape.ndim - 2];
  std::size_t count = 0;
  set_shape(kept->tensors[count++], kNVTEFloat32, {batch, heads, longest_query, 1});
  if (return_max_logit) {
    set_shape(kept->tensors[count++], kNVTEFloat32, {batch, heads, longest_query, 1});
  }
  set_shape(kept->tensors[count++], kNVTEInt64, {2});
  if (softmax != NVTE_VANILLA_SOFTMAX) {
    set_shape(kept->tensors[count++], kNVTEFloat32, {1, heads, 1, 1});
  }
  kept->size = count;
  set_shape(workspace, kNVTEByte, {1});
}

EXPORTED void nvte_fused_attn_bwd(const NVTETensor,
                                  const NVTETensor,
                                  const NVTETensor,
                                  const NVTETensor,
                                  const NVTETensor,
                                  const NVTETensor,
                                  NVTETensor,
                                  const NVTETensorPack*,
                                  NVTETensor,
                                  NVTETensor,
                                  NVTETensor,
                                  NVTETensor,
                                  NVTETensor,
                                  const NVTETensor,
                                  const NVTETensor,
                                  const NVTETensor,
                                  const NVTETensor,
                                  std::size_t,
                                  std::size_t,
                                  float,
                                  float,
                                  NVTE_QKV_Layout,
                                  NVTE_QKV_Format,
                                  NVTE_QKV_Format,
                                  NVTE_QKV_Layout,
                                  NVTE_QKV_Format,
                                  NVTE_QKV_Format,
                                  NVTE_Bias_Type,
                                  NVTE_Mask_Type,
                                  NVTE_Softmax_Type,
                                  int64_t,
                                  int64_t,
                                  bool,
                                  bool,
                                  bool,
                                  NVTETensor workspace,
                                  cudaStream_t) {
  const NVTEBasicTensor data = nvte_get_tensor_param(workspace, kNVTERowwiseData);
  if (data.data_ptr == nullptr) set_shape(workspace, kNVTEByte, {1});
}
