#include "sim/tracking/operator_traits.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "estimator/base/contains.h"
#include "estimator/profile/product_operators.h"
#include "sim/tracking/views.h"

namespace sim {
namespace {

using estimator::contains;

FlopRule flop_rule(estimator::ProductKind kind) {
  switch (kind) {
    case estimator::ProductKind::kMatrices:
      return FlopRule::kMatrixProduct;
    case estimator::ProductKind::kAttentionForward:
      return FlopRule::kAttentionForward;
    case estimator::ProductKind::kAttentionBackward:
      return FlopRule::kAttentionBackward;
  }
  throw std::logic_error("unknown kind of product");
}

/// Views that their schema does not call views, allocations, and what only tells the allocator.
constexpr std::string_view kMoveNoData[] = {
    "aten::_unsafe_view", "aten::unsafe_split",      "aten::unsafe_split_with_sizes",
    "aten::unsafe_chunk", "aten::atleast_2d",        "aten::empty",
    "aten::empty_like",   "aten::empty_strided",     "aten::empty_permuted",
    "aten::new_empty",    "aten::new_empty_strided", "aten::resize_",
    "aten::set_",         "aten::detach_",           "aten::requires_grad_",
    "aten::lift_fresh",   "aten::record_stream",     "aten::result_type",
    "aten::is_nonzero",
};

/// These call operators for work of its own, before their own kernel.
constexpr std::string_view kCountCalls[] = {
    "aten::_softmax_backward_data",  // multiplies its inputs first (SoftMax.cu)
    "aten::nll_loss_backward",       // sets the gradient to zero first (Loss.cu)
    "aten::nll_loss2d_backward",
};

struct NamedByteRule {
  std::string_view name;
  ByteRule bytes;
  RowRule rows = RowRule::kLargestInput;
};

constexpr NamedByteRule kByteRules[] = {
    {"aten::copy_", ByteRule::kNotRead},
    {"aten::fill_", ByteRule::kNotRead},
    {"aten::zero_", ByteRule::kNotRead},
    {"aten::_foreach_copy_", ByteRule::kNotRead},
    {"aten::_foreach_zero_", ByteRule::kNotRead},
    {"aten::normal_", ByteRule::kNotRead},
    {"aten::uniform_", ByteRule::kNotRead},
    {"aten::random_", ByteRule::kNotRead},
    {"aten::bernoulli_", ByteRule::kNotRead},
    {"aten::embedding", ByteRule::kRowsRead},
    {"aten::index_select", ByteRule::kRowsRead},
    {"aten::index", ByteRule::kRowsRead},
    {"aten::gather", ByteRule::kRowsRead},
    {"aten::nll_loss_forward", ByteRule::kRowsRead},
    {"aten::_embedding_bag", ByteRule::kBagsRead},
    {"aten::_embedding_bag_forward_only", ByteRule::kBagsRead},
    {"aten::nll_loss_backward", ByteRule::kTargetsWritten},
    {"aten::nll_loss2d_backward", ByteRule::kTargetsWritten},
    {"aten::index_add_", ByteRule::kRowsUpdated},
    {"aten::index_reduce_", ByteRule::kRowsUpdated},
    {"aten::index_copy_", ByteRule::kRowsWritten},
    {"aten::index_fill_", ByteRule::kRowsWritten, RowRule::kOneIndex},
    {"aten::index_put_", ByteRule::kRowsWritten, RowRule::kIndices},
    {"aten::_index_put_impl_", ByteRule::kRowsWritten, RowRule::kIndices},
    {"aten::scatter_", ByteRule::kRowsWritten},
    {"aten::scatter_add_", ByteRule::kRowsUpdated},
    {"aten::scatter_reduce_", ByteRule::kRowsUpdated},
    // These copy their first input, which is counted, and then update the copy.
    {"aten::index_add", ByteRule::kRowsUpdated},
    {"aten::index_reduce", ByteRule::kRowsUpdated},
    {"aten::index_copy", ByteRule::kRowsWritten},
    {"aten::scatter", ByteRule::kRowsWritten},
    {"aten::scatter_add", ByteRule::kRowsUpdated},
    {"aten::scatter_reduce", ByteRule::kRowsUpdated},
};

/// Kernels that run after a copy of the whole first input, which is an operator of its own.
constexpr std::string_view kUpdateACopy[] = {
    "aten::index_add",
    "aten::index_reduce",
    "aten::index_copy",
    "aten::scatter",
    "aten::scatter_add",
    "aten::scatter_reduce",
};

struct NamedArgument {
  std::string_view name;
  std::string_view argument;
};

/// Inputs of which only the sizes are used.
constexpr NamedArgument kUnread[] = {
    {"aten::nll_loss_backward", "self"},
    {"aten::nll_loss2d_backward", "self"},
    {"aten::max_pool2d_with_indices_backward", "self"},
};

template <class Table>
auto find_row(const Table& table, std::string_view name) {
  const auto row = std::find_if(
      std::begin(table), std::end(table), [&](const auto& entry) { return entry.name == name; });
  return row == std::end(table) ? nullptr : &*row;
}

/// A schema marks a view by an output that aliases an input without writing to it: "Tensor(a)".
bool is_view(const c10::FunctionSchema& schema) {
  return std::any_of(
      schema.returns().begin(), schema.returns().end(), [](const c10::Argument& output) {
        return output.alias_info() != nullptr && !output.alias_info()->isWrite();
      });
}

int argument_index(const c10::FunctionSchema& schema, std::string_view name) {
  const std::optional<int> index = schema.argumentIndexWithName(name);
  return index.value_or(-1);
}

int first_argument(const c10::FunctionSchema& schema,
                   std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (const int index = argument_index(schema, name); index >= 0) return index;
  }
  return -1;
}

/// The schema of the fused optimizers marks the gradients as written, since a kernel that is given
/// a gradient scale stores them unscaled; without a scale it only reads them.
bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite() &&
         argument.name() != "grads";
}

/// Operators that are composed of others for every device are registered under other keys.
bool has_kernel(const c10::OperatorHandle& op, c10::DeviceType device) {
  return op.hasKernelForDispatchKey(device == c10::DeviceType::CUDA ? c10::DispatchKey::CUDA
                                                                    : c10::DispatchKey::CPU);
}

void mark_written_arguments(const c10::FunctionSchema& schema, OperatorTraits& traits) {
  const bool returns_nothing = schema.returns().empty();
  const size_t count = std::min<size_t>(schema.arguments().size(), 64);
  for (size_t i = 0; i < count; ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    const uint64_t bit = uint64_t{1} << i;
    if (argument.is_out()) traits.out_arguments |= bit;
    if (returns_nothing && is_written(argument)) traits.unreturned_writes |= bit;
  }
}

}  // namespace

OperatorTraits traits_of(const c10::OperatorName& name, c10::DeviceType device) {
  const auto op = c10::Dispatcher::singleton().findSchema(name);
  if (!op) throw std::logic_error("libtorch does not know the operator " + c10::toString(name));
  const c10::FunctionSchema& schema = op->schema();
  OperatorTraits traits{.name = schema.name(), .device = device};
  traits.takes_host = !is_always_view(traits.name);
  traits.moves_no_data = is_view(schema) || contains(kMoveNoData, traits.name);
  traits.counts_calls = contains(kCountCalls, traits.name) || contains(kUpdateACopy, traits.name);
  traits.is_kernel = !traits.moves_no_data && !traits.counts_calls && has_kernel(*op, device);
  traits.is_pointwise = op->hasTag(at::Tag::pointwise) || traits.name == "aten::copy_";
  if (const estimator::Product* product = estimator::find_product(traits.name)) {
    traits.flops = flop_rule(product->kind);
    traits.first_operand = product->first_operand;
    traits.heads_before_sequence = product->heads_before_sequence;
    traits.causal_argument = first_argument(schema, {"is_causal", "causal", "custom_mask_type"});
    traits.mask_argument = first_argument(schema, {"attn_bias", "attn_mask", "bias"});
    traits.dropout_argument = argument_index(schema, "dropout_p");
    traits.query_ends_argument = first_argument(schema, {"cum_seq_q", "cu_seqlens_q"});
    traits.key_ends_argument = first_argument(schema, {"cum_seq_k", "cu_seqlens_k"});
    traits.longest_key_argument = first_argument(schema, {"max_k", "max_seqlen_k"});
    traits.window_left_argument = argument_index(schema, "window_size_left");
    traits.window_right_argument = argument_index(schema, "window_size_right");
    traits.beta_argument = argument_index(schema, "beta");
  }
  if (const NamedByteRule* rule = find_row(kByteRules, traits.name)) {
    traits.bytes = rule->bytes;
    traits.rows = rule->rows;
    traits.accumulate_argument = argument_index(schema, "accumulate");
  }
  for (const auto& [operator_name, argument] : kUnread) {
    if (operator_name != traits.name) continue;
    traits.unread_arguments |= uint64_t{1} << argument_index(schema, argument);
  }
  mark_written_arguments(schema, traits);
  return traits;
}

OperatorTraits traits_of_kernel(std::string name, c10::DeviceType device) {
  OperatorTraits traits{
      .name = std::move(name), .takes_host = false, .is_kernel = true, .device = device};
  if (const estimator::Product* product = estimator::find_product(traits.name)) {
    traits.flops = flop_rule(product->kind);
    traits.first_operand = product->first_operand;
  }
  return traits;
}

}  // namespace sim
