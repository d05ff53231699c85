#include "models/shard/unbacked_tensor.h"

#include <ATen/ops/empty.h>
#include <c10/core/StorageImpl.h>

namespace models {

at::Tensor unbacked_tensor(at::IntArrayRef shape, const at::TensorOptions& options) {
  if (options.device().is_meta()) return at::empty(shape, options);
  at::Tensor tensor = at::empty({0}, options);
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(shape);
  return tensor;
}

void give_memory(const at::Tensor& tensor, int64_t bytes) {
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(storage->allocator()->allocate(static_cast<std::size_t>(bytes)));
  storage->set_nbytes(bytes);
}

void take_memory(const at::Tensor& tensor) { take_memory(tensor.storage()); }

void take_memory(const c10::Storage& storage) {
  storage.unsafeGetStorageImpl()->set_data_ptr_noswap(at::DataPtr(nullptr, storage.device()));
  storage.unsafeGetStorageImpl()->set_nbytes(0);
}

void share_memory(const c10::Storage& to, const c10::Storage& from) {
  auto* owner = new c10::Storage(from);
  const auto release = [](void* held) { delete static_cast<c10::Storage*>(held); };
  to.unsafeGetStorageImpl()->set_data_ptr_noswap(
      at::DataPtr(from.mutable_data(), owner, release, from.device()));
  to.unsafeGetStorageImpl()->set_nbytes(from.nbytes());
}

at::Tensor memory_as(const at::Tensor& tensor, at::IntArrayRef shape) {
  at::Tensor memory = at::empty({0}, tensor.options().requires_grad(false));
  memory.unsafeGetTensorImpl()->set_storage_keep_dtype(tensor.storage());
  memory.unsafeGetTensorImpl()->set_sizes_contiguous(shape);
  return memory;
}

}  // namespace models
