// Matrix products, with the memory that the plan's framework needs for them.
//
// TransformerEngine's GEMM writes into a tensor that its layer made, and uses TransformerEngine's
// own workspace (framework_buffers.h; general_gemm in
// transformer_engine/pytorch/cpp_extensions/gemm.py). PyTorch's operators allocate another
// workspace for each thread that multiplies: 32 MiB on Hopper, and 1 MiB more if a product adds a
// bias. So on a device that computes nothing, TransformerEngine's products only allocate their
// outputs, and report to those who watch operators the operator that stands for them. On other
// devices that operator runs, with PyTorch's workspaces.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "models/shard/parameters.h"

namespace models {

/// [..., k] as a matrix with k columns; a matrix is returned unchanged.
at::Tensor rows(const at::Tensor& tensor);

/// The shape of left [..., k] times a matrix with so many columns.
std::vector<int64_t> product_shape(const at::Tensor& left, int64_t columns);

/// Left operands are [..., k], right ones [k, n].
class Products {
 public:
  struct Options {
    bool transformer_engine = false;
    bool device_computes = true;
  };
  explicit Products(Options options) : options_(options) {}

  /// left x right, [..., n].
  at::Tensor multiply(const at::Tensor& left, const at::Tensor& right) const;
  /// input x weight^T, plus the bias if there is one. weight is [n, k], bias is [n].
  at::Tensor linear(const at::Tensor& input,
                    const at::Tensor& weight,
                    const std::optional<at::Tensor>& bias) const;
  /// The gradient of the bias of linear(): the sum of the rows of the output's gradient [..., n].
  /// In TransformerEngine the product for the weight's gradient also computes it (BGRADB).
  at::Tensor bias_gradient(const at::Tensor& output_gradient) const;
  /// The same as multiply() for two matrices, written into `out`; plus the bias if there is one.
  void multiply_into(at::Tensor& out,
                     const at::Tensor& left,
                     const at::Tensor& right,
                     const std::optional<at::Tensor>& bias = {}) const;
  /// sum += left x right for two matrices of any type. `sum` is fp32, and no temporary of its size
  /// is made.
  void multiply_and_add(at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) const;

 private:
  bool makes_outputs_alone() const {
    return options_.transformer_engine && !options_.device_computes;
  }
  void fill_output(const at::Tensor& left, int64_t columns) const;

  Options options_;
};

/// output_gradient^T x input in the weight's type, as autograd needs it. Both are [..., features].
at::Tensor weight_gradient(const Products& products,
                           const at::Tensor& output_gradient,
                           const at::Tensor& input);

/// main_gradient += output_gradient^T x input, in one product with fp32 accumulation and without a
/// temporary of the weight's size.
void add_weight_gradient(const Products& products,
                         Parameter& parameter,
                         const at::Tensor& output_gradient,
                         const at::Tensor& input);

}  // namespace models
