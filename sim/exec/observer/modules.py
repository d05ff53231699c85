"""Tells which module runs, around every call of one."""

import ast
import linecache
import threading
import types
import weakref

import torch
from torch.nn.modules import module as torch_modules
from torch.utils._pytree import tree_leaves

from .parameters import path_of
from .tensors import local

# What torch.nn.Module.__call__ does instead, in the names of its own file. Hooks of torch.nn would be
# part of what torch.compile compiles: every module would break its graph. While it traces a call, this
# is the call itself; what runs compiled is told as the module that was compiled.
TOLD_CALL = """
def _wrapped_call_impl(self, *args, **kwargs):
    if torch.compiler.is_compiling():
        return _onerank_call(self, *args, **kwargs)
    compiler = _onerank_set_compiler(None)  # else it would compile what follows
    _onerank_before(self, args, kwargs)
    _onerank_set_compiler(compiler)
    try:
        return _onerank_call(self, *args, **kwargs)
    finally:
        compiler = _onerank_set_compiler(None)
        _onerank_after()
        _onerank_set_compiler(compiler)
"""
INTEGERS = (torch.int32, torch.int64)


def compiled_as(source, original):
    """Code that tracebacks show as the last line of the original: its call of the module."""
    line = max(number for *_, number in original.co_lines() if number)
    text = linecache.getline(original.co_filename, line).rstrip()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = line
            node.col_offset, node.end_col_offset = len(text) - len(text.lstrip()), len(text)
    return compile(tree, original.co_filename, "exec")


def integers_given(arguments):
    """Elements of the largest one of the tensors that can be the tokens of a batch: its rows, or else one
    row for the whole batch. Such a row may also have a number for each sample of another tensor."""
    tensors = [leaf for leaf in tree_leaves(arguments) if isinstance(leaf, torch.Tensor)]
    samples = {tensor.shape[0] for tensor in tensors if tensor.dim() > 1}
    batches = [tensor for tensor in tensors if tensor.dtype in INTEGERS]
    of_rows = [batch for batch in batches if batch.dim() > 1]
    single = [batch for batch in batches if batch.dim() == 1 and batch.numel() not in samples]
    return max((local(batch).numel() for batch in of_rows or single), default=0)


class Modules:
    def __init__(self, recorder, parameters):
        self.recorder = recorder
        self.parameters = parameters
        self._paths = {}  # by id of modules: from the outermost one that was called
        self._alive = {}  # weak references to these
        self._thread = threading.local()

    def watch(self):
        call = torch_modules.Module._wrapped_call_impl
        vars(torch_modules).update(
            _onerank_call=types.FunctionType(call.__code__, vars(torch_modules)),
            _onerank_before=self._before_call,
            _onerank_after=self._after_call,
            _onerank_set_compiler=torch._C._dynamo.eval_frame.set_eval_frame,
        )
        # A function is known by identity, and its code by the file that it is of.
        told = {}
        exec(compiled_as(TOLD_CALL, call.__code__), told)
        call.__code__ = told[call.__name__].__code__

    def _before_call(self, module, *arguments):
        around = self._thread.paths = getattr(self._thread, "paths", [])
        path = self._paths.get(id(module))
        if path is None and not around:
            path = self._add_root(module)
        if path is None:
            path = self._add(module, around[-1])  # it was made while its parent ran
        if not around and module in self.parameters.roots:
            self._begin_outermost(module, arguments)
        around.append(path)
        self.recorder.enter_module(path)

    def _after_call(self):
        around = self._thread.paths
        around.pop()
        self.recorder.leave_module()
        if not around:
            self.recorder.evaluation_ends()

    def _begin_outermost(self, module, arguments):
        is_loss = next(module.parameters(), None) is None
        if torch.is_grad_enabled() and not is_loss:
            self.recorder.model_reads(id(module), integers_given(arguments))
        elif self.parameters.are_trained(module):
            self.recorder.evaluation_starts()

    def _add_root(self, root):
        for path, module in root.named_modules():
            self._add(module, path_of(path))
        self.parameters.tell_root(root)
        return self._paths[id(root)]

    def _add(self, module, path):
        key = id(module)
        self._alive[key] = weakref.ref(module, lambda _: self._forget(key))
        self._paths[key] = path
        return path

    def _forget(self, key):
        del self._paths[key], self._alive[key]
