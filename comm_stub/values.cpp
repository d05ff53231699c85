#include "comm_stub/values.h"

#include <algorithm>

namespace comm_stub {
namespace {

at::Tensor in_memory_order(const at::Tensor& tensor) {
  return tensor.as_strided({tensor.numel()}, {1}, tensor.storage_offset());
}

}  // namespace

at::Tensor piece(const at::Tensor& tensor, int64_t start, int64_t count) {
  return in_memory_order(tensor).narrow(0, start, count);
}

at::Tensor equal_piece(const at::Tensor& tensor, int64_t chunks, int64_t index) {
  const int64_t count = tensor.numel() / chunks;
  return piece(tensor, index * count, count);
}

void write_unknown(const at::Tensor& output) { output.zero_(); }

void write_in_slots(const at::Tensor& output, const at::Tensor& input, int64_t slots) {
  if (output.numel() == 0) return;
  const int64_t slot = output.numel() / slots;
  const int64_t fits = std::min(slot, input.numel());
  const at::Tensor rows = in_memory_order(output).view({slots, slot});
  // `input` may be one of the slots (in place): that one is overwritten with itself.
  rows.narrow(1, 0, fits).copy_(piece(input, 0, fits).expand({slots, fits}));
  rows.narrow(1, fits, slot - fits).zero_();
}

void write_entry(const at::Tensor& output, const at::Tensor& input) {
  if (output.sizes() == input.sizes()) {
    output.copy_(input);
  } else {
    write_in_slots(output, input, 1);
  }
}

}  // namespace comm_stub
