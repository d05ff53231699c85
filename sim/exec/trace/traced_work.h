// What the virtual GPU and its libraries tell of a work, in the form of a trace.
#pragma once

#include <string>

#include "estimator/profile/trace.h"
#include "sim/virtual_gpu/control.h"

namespace sim {

/// The part of a kernel's name before its parameters, which tells it apart.
std::string readable_name(const char* mangled);

estimator::TraceWork product_work(const onerank_virtual_gpu_product& product);

/// From the numbers of onerank_exec_product_starts(). Its addresses are multiples of all that
/// matters.
onerank_virtual_gpu_product told_product(const int64_t* numbers);

/// As the operator of PyTorch that calls the kernel would be recorded.
estimator::TraceWork attention_work(const onerank_virtual_gpu_event& event,
                                    const onerank_virtual_gpu_attention& attention);

/// A launch of a kernel of torch.nn.attention.flex_attention, which torch.compile makes.
struct FlexAttention {
  int64_t batch = 0, heads = 0, queries = 0, keys = 0;
  int64_t heads_of_a_key = 1;
  int64_t key_width = 0, value_width = 0;
  int64_t block_queries = 0, block_keys = 0;  ///< of a block of the mask, whole or in part
  int64_t blocks = 0;                         ///< that the mask leaves, of all batches and heads
  bool is_bound = false;                      ///< the mask may leave fewer
  bool is_backward = false;
};
/// From the numbers in this order.
FlexAttention flex_attention(const int64_t* numbers);

/// As its operator would be recorded. The blocks that the mask leaves are multiplied whole. FLOPs
/// of a backward are those of five products, as benchmarks count them: the kernel has seven, since
/// one half of it finds the gradient of the queries, and the other half those of keys and values.
estimator::TraceWork flex_attention_work(const FlexAttention& attention, const std::string& dtype);

estimator::TraceWork copy_work(const onerank_virtual_gpu_event& event);

}  // namespace sim
