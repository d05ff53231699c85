// The operators whose FLOPs are those of products of matrices, by name.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace estimator {

enum class ProductKind {
  kMatrices,           ///< operands [.., m, k] and [.., k, n]
  kAttentionForward,   ///< two products of every query with every key
  kAttentionBackward,  ///< five of them
};

struct Product {
  std::string_view name;
  ProductKind kind;
  int first_operand;  ///< index of the first matrix, of the query or of the output's gradient
  bool heads_before_sequence = true;  ///< attention on [b, h, s, d], else on [b, s, h, d]
};

/// A product of TransformerEngine, which rounds operands in fp32 to TF32 (cublas_gemm in
/// transformer_engine/common/gemm/cublaslt_gemm.cu).
inline constexpr char kEngineProduct[] = "te::mm";

// clang-format off
inline constexpr auto kProductOperators = std::to_array<Product>({
    {"aten::mm", ProductKind::kMatrices, 0},
    {"aten::bmm", ProductKind::kMatrices, 0},
    {"aten::addmm", ProductKind::kMatrices, 1},
    {"aten::addmm_", ProductKind::kMatrices, 1},
    {"aten::_addmm_activation", ProductKind::kMatrices, 1},
    {"aten::baddbmm", ProductKind::kMatrices, 1},
    {"aten::baddbmm_", ProductKind::kMatrices, 1},
    {"aten::_grouped_mm", ProductKind::kMatrices, 0},
    {"aten::_scaled_grouped_mm", ProductKind::kMatrices, 0},
    {kEngineProduct, ProductKind::kMatrices, 0},
    {"te::grouped_mm", ProductKind::kMatrices, 0},
    {"te::grouped_addmm", ProductKind::kMatrices, 1},
    {"te::grouped_scaled_mm", ProductKind::kMatrices, 0},
    {"cudnn::grouped_gemm_glu", ProductKind::kMatrices, 0},
    {"cudnn::grouped_gemm_quant", ProductKind::kMatrices, 0},
    {"cudnn::grouped_gemm_dglu", ProductKind::kMatrices, 0},
    {"cudnn::grouped_gemm_wgrad", ProductKind::kMatrices, 0},
    {"aten::_scaled_mm", ProductKind::kMatrices, 0},
    {"aten::_scaled_mm_v2", ProductKind::kMatrices, 0},
    {"aten::_scaled_dot_product_flash_attention", ProductKind::kAttentionForward, 0},
    {"aten::_scaled_dot_product_flash_attention_for_cpu", ProductKind::kAttentionForward, 0},
    {"aten::_scaled_dot_product_efficient_attention", ProductKind::kAttentionForward, 0},
    {"aten::_scaled_dot_product_cudnn_attention", ProductKind::kAttentionForward, 0},
    {"aten::_flash_attention_forward", ProductKind::kAttentionForward, 0, false},
    {"aten::_efficient_attention_forward", ProductKind::kAttentionForward, 0, false},
    {"flash_attn::_flash_attn_forward", ProductKind::kAttentionForward, 0, false},
    {"flash_attn::_flash_attn_varlen_forward", ProductKind::kAttentionForward, 0, false},
    {"higher_order::flex_attention", ProductKind::kAttentionForward, 0},
    {"aten::_scaled_dot_product_flash_attention_backward", ProductKind::kAttentionBackward, 1},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", ProductKind::kAttentionBackward, 1},
    {"aten::_scaled_dot_product_efficient_attention_backward", ProductKind::kAttentionBackward, 1},
    {"aten::_scaled_dot_product_cudnn_attention_backward", ProductKind::kAttentionBackward, 1},
    {"aten::_flash_attention_backward", ProductKind::kAttentionBackward, 1, false},
    {"aten::_efficient_attention_backward", ProductKind::kAttentionBackward, 1, false},
    {"higher_order::flex_attention_backward", ProductKind::kAttentionBackward, 1},
    {"flash_attn::_flash_attn_backward", ProductKind::kAttentionBackward, 1, false},
    {"flash_attn::_flash_attn_varlen_backward", ProductKind::kAttentionBackward, 1, false},
});
// clang-format on

/// Null for other operators.
constexpr const Product* find_product(std::string_view operator_name) {
  const auto found =
      std::find_if(kProductOperators.begin(), kProductOperators.end(), [&](const Product& product) {
        return product.name == operator_name;
      });
  return found == kProductOperators.end() ? nullptr : &*found;
}

constexpr bool is_matrix_product(std::string_view operator_name) {
  const Product* product = find_product(operator_name);
  return product != nullptr && product->kind == ProductKind::kMatrices;
}
constexpr bool is_attention(std::string_view operator_name) {
  const Product* product = find_product(operator_name);
  return product != nullptr && product->kind != ProductKind::kMatrices;
}

}  // namespace estimator
