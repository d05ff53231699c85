#include "estimator/compute/convolution_rate.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/contains.h"
#include "estimator/base/database.h"
#include "estimator/base/enum_names.h"
#include "estimator/base/interpolate.h"

namespace onerank_data {
extern const std::string_view convolutions_json;
}

namespace estimator {
namespace {

/// What decides the rate; the first that holds.
enum class Kind {
  kPytorchsChannels,  ///< each channel for itself, by PyTorch's kernel
  kEachChannel,       ///< the same, by cuDNN's
  kGroups,
  kStridedGroups,  ///< gradients of x with a stride
  kFewInputs,      ///< of a few channels
  kFewOutputs,     ///< a few channels are written
  kProduct,        ///< filters of one element, and without tensor cores: nothing else is known
  kUsual,
};
constexpr std::array<EnumName<Kind>, 8> enum_names(Kind) {
  return {{{Kind::kPytorchsChannels, "pytorch_each_channel"},
           {Kind::kEachChannel, "each_channel"},
           {Kind::kGroups, "groups"},
           {Kind::kStridedGroups, "strided_groups"},
           {Kind::kFewInputs, "few_inputs"},
           {Kind::kFewOutputs, "few_outputs"},
           {Kind::kProduct, "product"},
           {Kind::kUsual, "usual"}}};
}

struct ConvolutionRow {
  Kind kind = Kind::kUsual;
  std::vector<ConvolutionPass> passes;
  std::optional<bool> fp32;
  std::optional<std::vector<int64_t>> at;
  std::optional<std::vector<double>> teramacs;
  std::optional<double> memory_share;
  std::optional<double> slowdown;
  std::optional<double> extra_seconds;
  std::string measured_on;
  std::string source;
};
template <class Visitor>
void visit_fields(Visitor& visit, ConvolutionRow& row) {
  visit("kind", row.kind, "what decides the rate");
  visit("passes", row.passes, "it is for");
  visit("fp32", row.fp32, "of fp32 elements, else of 16 bits; empty: any");
  visit("at",
        row.at,
        "elements of a channel's filter; of groups the channels of one; of few inputs the filter's "
        "elements for an output channel; of few outputs these channels");
  visit("teramacs", row.teramacs, "1e12 multiply-adds a second, there; empty: as the product");
  visit("memory_share", row.memory_share, "of the memory's rate; empty: all of it");
  visit("slowdown", row.slowdown, "over the product; empty: none");
  visit("extra_seconds", row.extra_seconds, "beside the product; empty: none");
  visit("measured_on", row.measured_on, "the GPU of which it is the rate");
  visit("source", row.source, "where it comes from");
}

const std::vector<ConvolutionRow>& convolution_rows() {
  static const auto rows =
      read_database<ConvolutionRow>(onerank_data::convolutions_json, "convolutions.json");
  return rows;
}

/// Fewer elements of a channel are in y than in x: half of them is no edge without padding.
bool has_stride(const ConvolutionShape& shape) {
  constexpr double kHalf = 0.5;
  return shape.outputs * static_cast<double>(shape.in) <=
         kHalf * shape.inputs * static_cast<double>(shape.out);
}

Kind kind_of_groups(const ConvolutionShape& shape) {
  if (shape.in == 1) return Kind::kEachChannel;
  const bool is_of_x = shape.pass == ConvolutionPass::kBackwardData;
  return is_of_x && has_stride(shape) ? Kind::kStridedGroups : Kind::kGroups;
}

/// A gradient of x reads y and writes x.
Kind kind_of(const ConvolutionShape& shape) {
  constexpr int64_t kFew = 12;
  if (shape.is_pytorchs) return Kind::kPytorchsChannels;
  if (shape.groups > 1) return kind_of_groups(shape);
  if (shape.window == 1 || !shape.has_tensor_cores) return Kind::kProduct;
  const bool is_of_x = shape.pass == ConvolutionPass::kBackwardData;
  const int64_t read = is_of_x ? shape.out : shape.in;
  const int64_t written = is_of_x ? shape.in : shape.out;
  if (read <= kFew) return Kind::kFewInputs;
  if (written <= kFew) return Kind::kFewOutputs;
  return Kind::kUsual;
}

double abscissa(Kind kind, const ConvolutionShape& shape) {
  const bool is_of_x = shape.pass == ConvolutionPass::kBackwardData;
  switch (kind) {
    case Kind::kPytorchsChannels:
    case Kind::kEachChannel:
    case Kind::kProduct:
    case Kind::kUsual:
      return static_cast<double>(shape.window);
    case Kind::kGroups:
    case Kind::kStridedGroups:
      return static_cast<double>(shape.in);
    case Kind::kFewInputs:
      return static_cast<double>((is_of_x ? shape.out : shape.in) * shape.window);
    case Kind::kFewOutputs:
      return static_cast<double>(is_of_x ? shape.in : shape.out);
  }
  return 0;
}

}  // namespace

double ConvolutionShape::multiply_adds() const {
  // Kernels of each channel visit the whole window for every element of x, also with a stride.
  const bool is_of_x = pass == ConvolutionPass::kBackwardData && in == 1 && groups > 1;
  return (is_of_x ? inputs : outputs) * static_cast<double>(in * window);
}

ConvolutionRate convolution_rate(const ConvolutionShape& shape, const Gpu& gpu) {
  const Kind kind = kind_of(shape);
  const auto& rows = convolution_rows();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const ConvolutionRow& candidate) {
    return candidate.kind == kind && contains(candidate.passes, shape.pass) &&
           candidate.fp32.value_or(shape.is_fp32) == shape.is_fp32;
  });
  if (row == rows.end()) return {};
  const double rate =
      row->teramacs ? interpolate_log(*row->at, *row->teramacs, abscissa(kind, shape)) * 1e12 : 0;
  return {.multiply_adds_per_second = rate * multiprocessors_over(gpu, row->measured_on),
          .slowdown = row->slowdown.value_or(1),
          .extra_seconds = row->extra_seconds.value_or(0),
          .memory_share = row->memory_share.value_or(1)};
}

}  // namespace estimator
