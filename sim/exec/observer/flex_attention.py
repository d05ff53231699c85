"""What the kernels of torch.nn.attention.flex_attention attend to.

torch.compile makes these kernels from a template, and the source of each has its constants: lengths,
heads, widths, and the sizes of a block. Which blocks of queries and keys a mask leaves is in tensors,
which create_block_mask computes on the GPU from a function of the program. Here this function is
evaluated on the CPU, with the values that are known of the tensors that it uses.
"""

import ctypes
import functools
import importlib.util
import re
import types

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

# Of a mask that is evaluated, and of the part of it that is evaluated at once.
MOST_ELEMENTS = 1 << 30
MOST_AT_ONCE = 1 << 24

# What create_block_mask does instead, in the names of its own file; see modules.py.
TOLD_MASK = """
def create_block_mask(*arguments, **named):
    mask = _onerank_create_block_mask(*arguments, **named)
    if torch.compiler.is_compiling():
        return mask
    compiler = _onerank_set_compiler(None)  # else it would compile what follows
    _onerank_mask_made(mask)
    _onerank_set_compiler(compiler)
    return mask
"""

CONJUNCTIONS = ("__and__", "__rand__", "__iand__", "and_", "bitwise_and", "logical_and")
DISJUNCTIONS = ("__or__", "__ror__", "__ior__", "or_", "bitwise_or", "logical_or")

# A constant of a template, and a parameter by another name.
CONSTANT = re.compile(r"^ +([A-Z][A-Z_]*) *(?:: *tl\.constexpr)? *= *([^\n]+)$", re.MULTILINE)
PARAMETER = re.compile(r"^(arg_\w+)(?: \+ (.+))?$")
SIZES = ("ZQ", "HQ", "Q_LEN", "KV_LEN", "GQA_SHARED_HEADS", "QK_HEAD_DIM", "V_HEAD_DIM")
COUNTS = ("KV_NUM_BLKS", "FULL_KV_NUM_BLKS")


class KnownValues(TorchFunctionMode):
    """Functions are given copies on the CPU instead of tensors on the GPU. What is computed from a
    tensor whose values are not known is taken to be true, and so are masks that it is part of, as
    far as the rest of them does not say otherwise: `is_bound` says of a result that it is not exact."""

    def __init__(self, read):
        super().__init__()
        self.read = read
        self.copies = {}  # by id of tensors on the GPU, which lie beside them
        self.bounds = {}  # results that are not exact, by id

    def is_bound(self, value):
        return id(value) in self.bounds

    def bound(self, value):
        self.bounds[id(value)] = value
        return value

    def on_host(self, value):
        if not isinstance(value, torch.Tensor) or not value.is_cuda:
            return value
        if id(value) not in self.copies:
            known = self.read(value)
            self.copies[id(value)] = (value, self.bound(torch.tensor(True)) if known is None else known)
        return self.copies[id(value)][1]

    def __torch_function__(self, function, _, arguments=(), named=None):
        name = getattr(function, "__name__", "")
        if name == "__get__":  # of a shape, a type or a device
            return function(*arguments, **(named or {}))
        arguments, named = tree_map(self.on_host, (arguments, named or {}))
        found = []
        tree_map(lambda value: found.append(self.is_bound(value)), (arguments, named))
        if not any(found):
            return function(*arguments, **named)
        if name in CONJUNCTIONS or name in DISJUNCTIONS:
            return self.bound(function(*arguments, **named))
        return self.bound(torch.tensor(True))


def blocks_of(mask, device_values):
    """For each block of queries, of how many blocks of keys the mask leaves some elements, but not all,
    and of how many all; then the same for each block of keys. And whether that is a bound: where values
    are not known, the mask may leave less. None if the mask is too large."""
    batch, heads = mask.kv_num_blocks.shape[:2]
    queries, keys = getattr(mask, "seq_lengths", mask.shape[-2:])
    if batch * heads * queries * keys > MOST_ELEMENTS:
        return None
    block_of_queries, block_of_keys = mask.BLOCK_SIZE
    rows = max(1, MOST_AT_ONCE // (batch * heads * keys * block_of_queries)) * block_of_queries
    some, whole, is_bound = [], [], False
    for first in range(0, queries, rows):
        part = range(first, min(first + rows, queries))
        left, is_part_bound = evaluated(mask.mask_mod, (batch, heads, part, keys), device_values)
        padding = (0, -keys % block_of_keys, 0, -len(part) % block_of_queries)
        left = torch.nn.functional.pad(left, padding, value=False)
        cells = left.unflatten(3, (-1, block_of_keys)).unflatten(2, (-1, block_of_queries))
        some.append(cells.any(5).any(3))
        whole.append(cells.all(5).all(3))
        is_bound = is_bound or is_part_bound
    some, whole = torch.cat(some, 2), torch.cat(whole, 2)
    parts = (some & ~whole, whole)
    return [part.sum(dim, dtype=torch.int32) for dim in (3, 2) for part in parts], is_bound


def evaluated(mask_mod, sizes, device_values):
    """The mask of [batch, heads, rows of queries, keys], and whether it is a bound."""
    batch, heads, rows, keys = sizes
    with KnownValues(device_values) as values:
        left = mask_mod(
            torch.arange(batch)[:, None, None, None],
            torch.arange(heads)[None, :, None, None],
            torch.arange(rows.start, rows.stop)[None, None, :, None],
            torch.arange(keys)[None, None, None, :],
        )
        is_bound = values.is_bound(left)
    return left.expand(batch, heads, len(rows), keys), is_bound


def constants_of(source):
    """By name, as texts. The first ones count: others are those of functions further on."""
    found = {}
    for name, text in CONSTANT.findall(source):
        found.setdefault(name, text.strip())
    return found


class Template:
    """What the source of a kernel says, of a launch with arguments of these names."""

    def __init__(self, source):
        self.texts = constants_of(source)
        self.is_backward = "DQ" in self.texts

    def number(self, name, arguments):
        return int(eval(self.texts[name], {"__builtins__": {}}, arguments))

    def tensor(self, name, arguments):
        """The tensor of a parameter of the template, and where in it the template's begins."""
        parameter, offset = PARAMETER.match(self.texts[name]).groups()
        start = int(eval(offset, {"__builtins__": {}}, arguments)) if offset else 0
        return arguments[parameter], start


def template_of(kernel, known={}):
    """None of a kernel that is not made from the templates for training."""
    if "flex_attention" not in kernel.fn.__name__:
        return None
    key = id(kernel)
    if key not in known:
        template = Template(getattr(kernel.fn, "src", ""))
        is_known = all(name in template.texts for name in (*SIZES, "KV_NUM_BLKS", "SPARSE_HQ"))
        known[key] = (kernel, template if is_known else None)  # the kernel, so that the key stays its own
    return known[key][1]


def counts_listed(template, name, arguments, counts, device_values):
    """The values of the template's parameter `name`, which is a list of `counts` numbers."""
    tensor, start = template.tensor(name, arguments)
    return device_values(tensor.as_strided((counts,), (1,), tensor.storage_offset() + start))


def blocks_listed(template, arguments, shape, device_values):
    """How many blocks the mask lists for all batches and heads; -1 where it is not known."""
    batch, heads, blocks_of_queries, blocks_of_keys = shape
    if blocks_of_queries == blocks_of_keys == 1:
        return batch * heads  # there is no mask
    masks = template.number("SPARSE_Z", arguments) * template.number("SPARSE_HQ", arguments)
    lists = [
        counts_listed(template, name, arguments, masks * blocks_of_queries, device_values)
        for name in COUNTS
        if name in template.texts
    ]
    if any(counts is None for counts in lists):
        return -1
    return sum(int(counts.sum()) for counts in lists) * batch * heads // masks


class FlexAttention:
    """Tells the recorder of launches, and what the lists of masks hold."""

    def __init__(self, recorder):
        self.recorder = recorder
        self._bounds = set()  # addresses of numbers of blocks that are bounds

    def watch(self, module):
        """Has every mask told that `module`, torch.nn.attention.flex_attention, makes. torch.compile
        compiles what makes it, and no more."""
        make = module.create_block_mask
        vars(module).update(
            _onerank_create_block_mask=types.FunctionType(
                make.__code__, vars(module), make.__name__, make.__defaults__, make.__closure__
            ),
            _onerank_mask_made=functools.partial(self._quietly, self._tell_mask),
            _onerank_set_compiler=torch._C._dynamo.eval_frame.set_eval_frame,
        )
        told = {}
        exec(compile(TOLD_MASK, make.__code__.co_filename, "exec"), told)
        make.__code__, make.__defaults__ = told[make.__name__].__code__, None
        leave_to_python(make.__code__)

    def tell_launch(self, kernel, arguments):
        """Whether it is a kernel of flex_attention; then its launch is told as one of attention."""
        if "flex_attention" not in kernel.fn.__name__:
            return False
        launch = self._quietly(self._launch, kernel, arguments)
        if launch is not None:
            numbers, dtype = launch
            self.recorder.attention_starts((ctypes.c_int64 * len(numbers))(*numbers), dtype.encode())
        return launch is not None

    def _quietly(self, tell, *arguments):
        """None if it fails: what it would tell is listed as not known. Tensors are made on the CPU, whatever
        device the program or torch.compile have made the default."""
        self.recorder.own_work_starts()
        try:
            with torch.device("cpu"):
                return tell(*arguments)
        except Exception:
            return None
        finally:
            self.recorder.own_work_ends()

    def _read(self, tensor):
        """A copy of a tensor on the GPU, on the CPU; None where its values are not known."""
        span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
        copy = torch.empty(span * tensor.element_size(), dtype=torch.uint8)
        if not self.recorder.read_known(tensor.data_ptr(), copy.nbytes, copy.data_ptr()):
            return None
        return copy.view(tensor.dtype).as_strided(tensor.shape, tensor.stride())

    def _tell_mask(self, mask):
        tensors = (mask.kv_num_blocks, mask.full_kv_num_blocks, mask.q_num_blocks, mask.full_q_num_blocks)
        self._bounds.difference_update(tensor.data_ptr() for tensor in tensors)
        found = blocks_of(mask, self._read)
        if found is None:
            return
        counts, is_bound = found
        for tensor, numbers in zip(tensors, counts):
            self._hold(tensor, numbers.contiguous())
            if is_bound:
                self._bounds.add(tensor.data_ptr())

    def _hold(self, tensor, numbers):
        if tensor.shape == numbers.shape and tensor.dtype == numbers.dtype and tensor.is_contiguous():
            self.recorder.tensor_holds(tensor.data_ptr(), numbers.nbytes, numbers.data_ptr())

    def _launch(self, kernel, arguments):
        """Of a launch, as onerank_exec_attention_starts takes it: its numbers, and the type of its
        queries. None of other kernels."""
        template = template_of(kernel)
        if template is None:
            return None
        named = dict(zip(kernel.fn.arg_names, arguments))
        sizes = [template.number(name, named) for name in SIZES]
        batch, heads, queries, keys = sizes[:4]
        rows = min(template.number("SPARSE_Q_BLOCK_SIZE", named), queries)
        columns = min(template.number("SPARSE_KV_BLOCK_SIZE", named), keys)
        shape = (batch, heads, -(-queries // rows), -(-keys // columns))
        blocks = blocks_listed(template, named, shape, self._read)
        is_bound = blocks < 0 or template.tensor("KV_NUM_BLKS", named)[0].data_ptr() in self._bounds
        if blocks < 0:
            blocks = batch * heads * shape[2] * shape[3]
        queries_given, _ = template.tensor("Q", named)
        dtype = queries_given.type().rpartition(".")[2].removesuffix("Tensor")
        return [*sizes, rows, columns, blocks, int(is_bound), int(template.is_backward)], dtype


def watched(recorder):
    """None without torch.nn.attention.flex_attention, which came with torch 2.5."""
    if importlib.util.find_spec("torch.nn.attention.flex_attention") is None:
        return None
    from torch.nn.attention import flex_attention

    attention = FlexAttention(recorder)
    attention.watch(flex_attention)
    return attention


def leave_to_python(code):
    """torch.compile does not compile a call of it, but what it calls."""
    frames = torch._C._dynamo.eval_frame
    if hasattr(frames, "skip_code"):
        return frames.skip_code(code)
    action = frames._FrameAction
    frames.set_code_exec_strategy(code, frames._FrameExecStrategy(action.SKIP, action.DEFAULT))
