"""What only Python knows of a program: which module runs, and what lasting memory is for.

The recorder runs this inside the program, once, with `recorder_path` set. Modules are told around
every call of one, memory by hooks of torch.optim around every optimizer step: where torch.compile made
that, around the compiled code that holds it.
"""

# In these an optimizer makes what lasts. Gradients are made again for every step.
FIRST_STEPS = 3
# Milliseconds.
LONGEST_REST = 1000
WATCHDOG_LOOKS = 300  # at least twice: PyTorch's watchdog of NCCL sleeps for 100 between its looks

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
# By this name torch.compile keeps the module that it was given.
COMPILED = "_orig_mod"


def path_of(name):
    """As it is without torch.compile."""
    return ".".join(part for part in name.split(".") if part != COMPILED).encode()


def observe(recorder_path):
    import ast
    import atexit
    import ctypes
    import functools
    import gc
    import json
    import linecache
    import os
    import pathlib
    import sys
    import threading
    import time
    import traceback
    import types
    import weakref

    import torch
    from torch.nn.modules import module as modules
    from torch.nn.parameter import is_lazy
    from torch.optim import optimizer as optimizers
    from torch.utils._pytree import tree_leaves

    # PyDLL: calls are short and keep the interpreter's lock.
    recorder = ctypes.PyDLL(recorder_path)
    enter, leave = recorder.onerank_exec_enter_module, recorder.onerank_exec_leave_module
    memory_lasts = recorder.onerank_exec_memory_lasts
    memory_lasts.argtypes = [ctypes.c_uint64, ctypes.c_char_p, ctypes.c_char_p]
    tensor_lies = recorder.onerank_exec_tensor_lies
    tensor_lies.argtypes = [ctypes.c_uint64, ctypes.c_int64]
    kernel_updates = recorder.onerank_exec_kernel_updates
    kernel_updates.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
    model_reads = recorder.onerank_exec_model_reads
    model_reads.argtypes = [ctypes.c_uint64, ctypes.c_int64]
    host_updated = recorder.onerank_exec_host_updated
    host_updated.argtypes = [ctypes.c_int64, ctypes.c_int]
    told_region = recorder.onerank_exec_region_made
    callback = ctypes.PYFUNCTYPE(None)
    told_region.argtypes = [ctypes.c_char_p, ctypes.c_int, callback, callback]
    optimizer_steps = recorder.onerank_exec_optimizer_steps
    optimizer_steps.argtypes = [ctypes.c_uint64]
    is_rank = recorder.onerank_exec_is_rank
    is_rank.argtypes = [ctypes.c_int64, ctypes.c_int64]

    integers = (torch.int32, torch.int64)
    paths = {}  # by id of modules: from the outermost one that was called
    alive = {}  # weak references to these
    roots = weakref.WeakSet()
    steps = weakref.WeakKeyDictionary()  # of each optimizer
    thread = threading.local()

    def forget(key):
        del paths[key], alive[key]

    def add(module, path):
        key = id(module)
        alive[key] = weakref.ref(module, lambda _: forget(key))
        paths[key] = path
        return path

    def add_root(root):
        roots.add(root)
        for path, module in root.named_modules():
            add(module, path_of(path))
        for name, parameter in root.named_parameters():
            tell_parameter(parameter, path_of(name))

    def integers_given(arguments):
        """Elements of the largest one of the tensors that can be the tokens of a batch."""
        tensors = (leaf for leaf in tree_leaves(arguments) if isinstance(leaf, torch.Tensor))
        batches = (tensor for tensor in tensors if tensor.dtype in integers and tensor.dim() > 1)
        return max((local(batch).numel() for batch in batches), default=0)

    def before_call(module, *arguments):
        around = thread.paths = getattr(thread, "paths", [])
        path = paths.get(id(module))
        watch_compiler()
        if path is None and not around:
            add_root(module)
            path = paths[id(module)]
        if path is None:
            path = add(module, around[-1])  # it was made while its parent ran
        if not around and module in roots and torch.is_grad_enabled():
            model_reads(id(module), integers_given(arguments))
        around.append(path)
        enter(path)

    def after_call():
        thread.paths.pop()
        leave()

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

    def tell_calls():
        call = modules.Module._wrapped_call_impl
        vars(modules).update(
            _onerank_call=types.FunctionType(call.__code__, vars(modules)),
            _onerank_before=before_call,
            _onerank_after=after_call,
            _onerank_set_compiler=torch._C._dynamo.eval_frame.set_eval_frame,
        )
        # A function is known by identity, and its code by the file that it is of.
        told = {}
        exec(compiled_as(TOLD_CALL, call.__code__), told)
        call.__code__ = told[call.__name__].__code__

    transforms = torch._C._functorch

    def local(tensor):
        """What this rank holds of a parameter of DeepSpeed's stage 3, or of a DTensor; without the
        wrappers of torch.func."""
        tensor = getattr(tensor, "ds_tensor", getattr(tensor, "_local_tensor", tensor))
        while isinstance(tensor, torch.Tensor) and transforms.is_functorch_wrapped_tensor(tensor):
            tensor = transforms.get_unwrapped(tensor)
        return tensor

    rows = ("crow_indices", "col_indices", "values")
    columns = ("ccol_indices", "row_indices", "values")
    parts_of_sparse = {
        torch.sparse_coo: ("_indices", "_values"),
        torch.sparse_csr: rows,
        torch.sparse_bsr: rows,
        torch.sparse_csc: columns,
        torch.sparse_bsc: columns,
    }

    def parts_of(tensor):
        """The tensors that hold what a tensor does not hold itself."""
        if hasattr(tensor, "__tensor_flatten__"):  # torchao's Float8 weights
            return [getattr(tensor, part) for part in tensor.__tensor_flatten__()[0]]
        return [getattr(tensor, part)() for part in parts_of_sparse.get(tensor.layout, ())]

    def storage_of(tensor):
        """None if it has no memory: MKL-DNN's and fake tensors."""
        try:
            storage = tensor.untyped_storage()
            storage.data_ptr()
            return storage
        except RuntimeError:
            return None

    def tell(tensor, category, name):
        tensor = local(tensor)
        if not isinstance(tensor, torch.Tensor):
            return
        if parts := parts_of(tensor):
            for part in parts:
                tell(part, category, name)
            return
        storage = storage_of(tensor) if tensor.is_cuda else None
        if storage is None:
            return
        if tensor.nbytes < storage.nbytes():
            tensor_lies(tensor.data_ptr(), tensor.nbytes)
        if 2 * tensor.nbytes < storage.nbytes():
            name = b""  # a flat buffer of several
        memory_lasts(storage.data_ptr(), category, name)

    walked = weakref.WeakSet()  # roots
    named = []  # (weak reference to a parameter, name, whether it has a main gradient) of these
    names = {}  # of parameters, by id

    def walk():
        """Finds all parameters, which takes long: a program's parameters seldom change."""
        named.clear()
        names.clear()
        walked.clear()
        records.clear()
        for root in list(roots):
            walked.add(root)
            for name, parameter in root.named_parameters():
                names[id(parameter)] = name = path_of(name)
                named.append((weakref.ref(parameter), name, hasattr(parameter, "main_grad")))

    records = {}  # of parameters, by id

    def tell_parameter(parameter, name):
        if is_lazy(parameter):
            return
        tell(parameter, b"parameter", name)
        held = local(parameter)
        records[id(parameter)] = {
            "name": name.decode(),
            "shape": list(held.shape),
            "dtype": held.type().rpartition(".")[2].removesuffix("Tensor"),
            "bytes": held.nbytes,
            "tensor_sharded": False,
            "shared_copy": False,
        }

    def send_records():
        recorder.onerank_exec_parameters(json.dumps(list(records.values())).encode())

    def tell_rank():
        distributed = sys.modules.get("torch.distributed")
        if distributed and distributed.is_available() and distributed.is_initialized():
            is_rank(distributed.get_rank(), distributed.get_world_size())

    def are_known():
        return len(walked) == len(roots) and all(reference() is not None for reference, *_ in named)

    def told(closure):
        """It runs the model: it is no part of the step in which it is called."""

        @functools.wraps(closure, updated=())
        def closure_told(*arguments, **named):
            recorder.onerank_exec_closure_starts()
            try:
                return closure(*arguments, **named)
            finally:
                recorder.onerank_exec_closure_ends()

        return closure_told

    def with_closure_told(_, arguments, named):
        """The arguments of an optimizer's step, whose first one is the optimizer."""
        if torch.compiler.is_compiling():
            return None
        if callable(named.get("closure")):
            return arguments, {**named, "closure": told(named["closure"])}
        if len(arguments) > 1 and callable(arguments[1]):
            return (arguments[0], told(arguments[1]), *arguments[2:]), named
        return None

    def first_parameter(optimizer):
        """By which optimizers of different parameters are told apart."""
        return next((id(parameter) for group in optimizer.param_groups for parameter in group["params"]), 0)

    watched = set()  # modules of the compiler that were loaded

    def once_loaded(name, watch):
        if name not in watched and name in sys.modules:
            watched.add(name)
            watch(sys.modules[name])

    def tell_compilations(callbacks):
        callbacks.callback_handler.register_start_callback(lambda *_: recorder.onerank_exec_compiles())

    def watch_compiler():
        once_loaded("torch._dynamo.callback", tell_compilations)

    def before_step(optimizer, *_):
        if torch.compiler.is_compiling():
            return before_traced_step()
        once_loaded("torch._inductor.runtime.triton_heuristics", tell_launches)
        watch_compiler()
        optimizer_steps(first_parameter(optimizer))
        steps[optimizer] = step = steps.get(optimizer, 0) + 1
        unfinished.add(optimizer)
        told_before[optimizer] = told_updates
        is_new = step <= FIRST_STEPS or not are_known()
        if is_new:
            walk()
        for reference, name, has_main_gradient in named:
            parameter = reference()
            if is_new:
                tell_parameter(parameter, name)
            gradient = getattr(parameter, "main_grad", None) if has_main_gradient else parameter.grad
            if gradient is not None:
                tell(gradient, b"gradient", name)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if id(parameter) in names:
                    continue
                # Optimizers with copies of the weights are given the copies.
                if is_new and names:
                    tell(parameter, b"master_weight", b"")
                elif is_new:
                    tell_parameter(parameter, b"")
                if parameter.grad is not None:
                    tell(parameter.grad, b"gradient", b"")
        if is_new:
            tell_rank()
            send_records()

    updating = set()  # names of compiled kernels

    def tell_launch(kernel, arguments):
        """What a kernel of torch.compile reads and writes by one parameter ("in_out_ptr0")."""
        name = kernel.fn.__name__
        updated, others = [], []
        for parameter, argument in zip(kernel.fn.arg_names, arguments):
            if isinstance(argument, torch.Tensor):
                (updated if parameter.startswith("in_out_ptr") else others).append(argument.data_ptr())
        if updated:
            updating.add(name)
        if name in updating:  # of several kernels with one name
            addresses = (ctypes.c_uint64 * (len(updated) + len(others)))(*updated, *others)
            kernel_updates(name.encode(), addresses, len(addresses), len(updated))

    def tell_launches(heuristics):
        launch = heuristics.CachingAutotuner.run

        @functools.wraps(launch)
        def told_launch(kernel, *arguments, **named):
            tell_launch_safely(kernel, arguments)
            return launch(kernel, *arguments, **named)

        heuristics.CachingAutotuner.run = told_launch

    unfinished = weakref.WeakSet()  # optimizers whose step has not ended

    updates = weakref.WeakKeyDictionary()  # what a step of each optimizer moves in the host's memory
    told_updates = 0
    told_before = weakref.WeakKeyDictionary()  # of these, before the step of each optimizer

    def bytes_on_host(tensor):
        held = local(tensor)
        return held.nbytes if isinstance(held, torch.Tensor) and held.device.type == "cpu" else 0

    def update_of(optimizer):
        """It reads gradients, and reads and writes parameters and their states."""
        moved, kept = 0, 0
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None or bytes_on_host(parameter) == 0:
                    continue
                state = optimizer.state.get(parameter, {})
                kept += sum(map(bytes_on_host, state.values())) if isinstance(state, dict) else 0
                moved += bytes_on_host(parameter.grad) + 2 * bytes_on_host(parameter)
        of_torch = type(optimizer).__module__.startswith("torch.optim")
        is_fused = not of_torch or kept == 0 or bool(optimizer.param_groups[0].get("fused"))
        return moved + 2 * kept, is_fused

    def tell_update(optimizer):
        """An optimizer that stepped others did nothing itself."""
        nonlocal told_updates
        if told_before.pop(optimizer, None) != told_updates:
            return
        if steps[optimizer] <= FIRST_STEPS:
            updates[optimizer] = update_of(optimizer)
        moved, is_fused = updates.get(optimizer, (0, True))
        if moved > 0:
            told_updates += 1
            host_updated(moved, is_fused)

    def let_watchdog_look():
        """What a collective used that nobody waited for, PyTorch's watchdog releases when it has seen
        the end of it. DistributedDataParallel's first bucket, which holds all gradients, is then still
        there when new ones are laid out in the second step, whose forward begins on a GPU long after
        the watchdog's look."""
        distributed = sys.modules.get("torch.distributed")
        if distributed and distributed.is_available() and distributed.is_initialized():
            time.sleep(WATCHDOG_LOOKS * 1e-3)

    def after_step(optimizer, *_):
        if torch.compiler.is_compiling():
            return after_traced_step()
        unfinished.discard(optimizer)
        tell_update(optimizer)
        if steps.get(optimizer, 0) > FIRST_STEPS:
            return
        if steps.get(optimizer, 0) == 1:
            let_watchdog_look()
        for parameter, state in optimizer.state.items():
            for value in state.values() if isinstance(state, dict) else ():
                tell(value, b"optimizer_state", names.get(id(parameter), b""))

    # A compiled step runs no hooks, but these are traced with it: the functions below as constants,
    # which leave nothing in what is compiled.
    step_code = optimizers.Optimizer.profile_hook_step(lambda: None).__code__  # around every step
    compiled = weakref.WeakSet()  # optimizers that may be stepped by compiled code
    around_regions = []  # what the recorder calls

    def now_compiled():
        return str(torch._guards.CompileContext.current_compile_id())

    def traced_code():
        """One list for each attempt to trace a region: its own code, then what was inlined whole."""
        return torch._guards.TracingContext.get().traced_code

    def harmless(tell):
        """Prints an error and goes on, as the program does not depend on it, nor does its compiler."""

        def told(*arguments):
            try:
                tell(*arguments)
            except Exception:
                traceback.print_exc()

        return told

    tell_launch_safely = harmless(tell_launch)

    @harmless
    def before_traced_step():
        watch_regions()
        thread.traced = code = traced_code()
        if code[0] is step_code:
            thread.stepping = now_compiled()

    @harmless
    def after_traced_step():
        if traced_code() is getattr(thread, "traced", None):
            thread.stepping = now_compiled()

    def watch_regions():
        """From the first traced step on: the compiler is loaded then."""
        if around_regions:
            return
        for tell in (before_compiled_step, after_compiled_step):
            around_regions.append(callback(torch.compiler.disable(tell)))
        torch._dynamo.convert_frame.register_bytecode_hook(region_made)

    @harmless
    def region_made(*_):
        region, stepping = now_compiled(), getattr(thread, "stepping", None)
        thread.stepping = None
        if stepping == region:
            objects = gc.get_objects()
            compiled.update(known for known in objects if issubclass(type(known), optimizers.Optimizer))
        told_region(region.encode(), stepping == region, *around_regions)

    def before_compiled_step():
        for optimizer in list(compiled):
            before_step(optimizer)

    def after_compiled_step():
        for optimizer in list(compiled):
            told_before[optimizer] = told_updates  # they stepped one after the other
            after_step(optimizer)

    before_traced_step._dynamo_marked_constant = after_traced_step._dynamo_marked_constant = True

    def works(task):
        """Whether it is a thread of autograd that has something to do."""
        try:
            name = (task / "comm").read_text()
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False  # it has ended
        return name.startswith("pt_autograd") and state != "S"

    def let_autograd_rest():
        """A thread that takes the interpreter once that is torn down aborts the process. Those of
        autograd do, to drop functions that a backward called (fully_shard has some): here nothing
        takes long on the device, so that a program can be that fast to end after a backward."""
        rests = 0
        for _ in range(LONGEST_REST):
            time.sleep(1e-3)  # gives the interpreter away
            tasks = pathlib.Path("/proc/self/task").iterdir()
            rests = 0 if any(works(task) for task in tasks) else rests + 1
            if rests == 2:
                return

    def end():
        """After --steps the program stops where it was: there is nothing to tear down in order."""
        for optimizer in list(unfinished):
            after_step(optimizer)  # it ran out of memory, and holds what it had made
        send_records()
        if not recorder.onerank_exec_was_ended():
            return let_autograd_rest()
        if "multiprocessing.util" in sys.modules:
            sys.modules["multiprocessing.util"]._exit_function()  # ends data loaders' workers
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    atexit.register(end)  # early, so that the program's own handlers run before it
    tell_calls()
    optimizers.register_optimizer_step_pre_hook(before_step)
    optimizers.register_optimizer_step_pre_hook(with_closure_told)
    optimizers.register_optimizer_step_post_hook(after_step)


observe(recorder_path)
