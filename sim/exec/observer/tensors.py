"""What tensors hold of memory."""

import torch

ROWS = ("crow_indices", "col_indices", "values")
COLUMNS = ("ccol_indices", "row_indices", "values")
PARTS_OF_SPARSE = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ROWS,
    torch.sparse_bsr: ROWS,
    torch.sparse_csc: COLUMNS,
    torch.sparse_bsc: COLUMNS,
}


def local(tensor):
    """What this rank holds of a parameter of DeepSpeed's stage 3, or of a DTensor; without the wrappers
    of torch.func."""
    transforms = torch._C._functorch
    tensor = getattr(tensor, "ds_tensor", getattr(tensor, "_local_tensor", tensor))
    while isinstance(tensor, torch.Tensor) and transforms.is_functorch_wrapped_tensor(tensor):
        tensor = transforms.get_unwrapped(tensor)
    return tensor


def parts_of(tensor):
    """The tensors that hold what a tensor does not hold itself; None if it does."""
    if hasattr(tensor, "_local_shards"):  # torch.distributed's ShardedTensor
        return [shard.tensor for shard in tensor._local_shards]
    if hasattr(tensor, "__tensor_flatten__"):  # torchao's Float8 weights
        return [getattr(tensor, part) for part in tensor.__tensor_flatten__()[0]]
    parts = PARTS_OF_SPARSE.get(tensor.layout)
    return parts and [getattr(tensor, part)() for part in parts]


def storage_of(tensor):
    """None if it has no memory: MKL-DNN's and fake tensors."""
    try:
        storage = tensor.untyped_storage()
        storage.data_ptr()
        return storage
    except RuntimeError:
        return None


def bytes_on_host(tensor):
    held = local(tensor)
    if not isinstance(held, torch.Tensor):
        return 0
    parts = parts_of(held)
    if parts is not None:
        return sum(map(bytes_on_host, parts))
    return held.nbytes if held.device.type == "cpu" else 0


def tell(recorder, tensor, category, name):
    """What the memory of a tensor is for, and of which parameter (b"" if of none, or nobody knows)."""
    tensor = local(tensor)
    if not isinstance(tensor, torch.Tensor):
        return
    parts = parts_of(tensor)
    if parts is not None:
        for part in parts:
            tell(recorder, part, category, name)
        return
    storage = storage_of(tensor) if tensor.is_cuda else None
    if storage is None:
        return
    if tensor.nbytes < storage.nbytes():
        recorder.tensor_lies(tensor.data_ptr(), tensor.nbytes)
    if 2 * tensor.nbytes < storage.nbytes():
        name = b""  # a flat buffer of several
    recorder.memory_lasts(storage.data_ptr(), category, name)
