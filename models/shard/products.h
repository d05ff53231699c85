// Products of matrices, as the framework that the shard stands for makes them.
//
// TransformerEngine's GEMM writes into a tensor that its layer made, and works in a workspace of
// TransformerEngine's own (framework_buffers.h; general_gemm in
// transformer_engine/pytorch/cpp_extensions/gemm.py). PyTorch's operators make another workspace
// for each thread that multiplies: of 32 MiB on Hopper, and of 1 MiB more where a product adds a
// bias. On a device that computes nothing TransformerEngine's products therefore make their outputs
// alone, and tell whoever watches operators of the operator that stands for them. On others that
// operator runs, with PyTorch's workspaces.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace models {

/// [..., k] as a matrix; a matrix as it lies.
at::Tensor rows(const at::Tensor& tensor);

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
  /// input x weight^T, and the bias where there is one: weight [n, k], bias [n].
  at::Tensor linear(const at::Tensor& input,
                    const at::Tensor& weight,
                    const std::optional<at::Tensor>& bias) const;
  /// The gradient of linear()'s bias, the sum of the rows of its output's gradient [..., n].
  /// TransformerEngine's product for the weight's gradient makes it on its way (BGRADB).
  at::Tensor bias_gradient(const at::Tensor& output_gradient) const;
  /// The same as multiply() for two matrices, written into `out`.
  void multiply_into(at::Tensor& out, const at::Tensor& left, const at::Tensor& right) const;
  /// sum += left x right for two matrices: `sum` is fp32 whatever their type, and there is no
  /// temporary of its size.
  void multiply_and_add(at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) const;

 private:
  bool makes_outputs_alone() const {
    return options_.transformer_engine && !options_.device_computes;
  }
  void fill_output(const at::Tensor& left, int64_t columns) const;

  Options options_;
};

}  // namespace models
