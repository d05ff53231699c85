"""What programs tune by the time between two events of the device: what is tried, and what is chosen."""

import ctypes
import functools
import math
import re

import torch

from .compiler import array_of
from .harmless import harmless

# Numbers of cudaDataType.
CUDA_TYPES = {torch.float32: 0, torch.float16: 2, torch.int8: 3, torch.bfloat16: 14}
PRODUCT = re.compile(r"triton_(baddb|addm|b)?mm(_|$)")
CONVOLUTION = re.compile(r"triton_convolution")
FORWARD = 1  # of onerank_virtual_gpu_convolution


def product_of(candidate):
    """What a template of Inductor multiplies that stands in place of cuBLAS or cuDNN, as
    onerank_exec_product_starts takes it; None if it is not known."""
    inputs = candidate.input_tensor_meta
    if len(inputs) == 1:  # a tensor that is given twice stands there once
        inputs = inputs * 2
    if not inputs or inputs[-1].dtype not in CUDA_TYPES:
        return None
    kind = (CUDA_TYPES[inputs[-1].dtype], int(torch.backends.cuda.matmul.allow_tf32))
    if PRODUCT.match(candidate.kernel_name):
        *batch, rows, depth = inputs[-2].sizes
        return [inputs[-1].sizes[-1], rows, depth, math.prod(batch), *kind, *[0] * 6]
    if CONVOLUTION.match(candidate.kernel_name):
        return convolution_of(inputs[0].sizes, inputs[1].sizes, candidate.output_tensor_meta, kind)
    return None


def known_product_of(candidate):
    """None also of what another release of torch describes in another way."""
    try:
        return product_of(candidate)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError):
        return None


def convolution_of(image, filters, output, kind):
    output = output[0].sizes if isinstance(output, (list, tuple)) else output.sizes
    groups = image[1] // filters[1]
    channels = filters[0] // groups
    window = math.prod(filters[2:])
    pixels = math.prod(output) // output[1]
    shape = (filters[1], channels, window, math.prod(image), math.prod(output))
    return [channels, pixels, filters[1] * window, groups, *kind, FORWARD, *shape]


class Tuning:
    def __init__(self, recorder, arrivals):
        self.recorder = recorder
        self._chose = harmless(self._tell_choice)
        arrivals.watch("torch._inductor.autotune_process", self._tell_products)
        arrivals.watch("torch._inductor.select_algorithm", self._tell_algorithms)
        arrivals.watch("torch._inductor.runtime.triton_heuristics", self._tell_launchers)
        arrivals.watch("triton.runtime.autotuner", self._tell_configurations)

    def _tell_choice(self, name, chosen, tried):
        self.recorder.tuned(name.encode(), str(chosen).encode(), tried)

    def _tell_products(self, processes):
        measure = processes.TritonBenchmarkRequest.benchmark

        @functools.wraps(measure)
        def told(candidate, *arguments, **named):
            product = known_product_of(candidate)
            if product is None:
                return measure(candidate, *arguments, **named)
            self.recorder.product_starts(array_of(ctypes.c_int64, product)[0])
            try:
                return measure(candidate, *arguments, **named)
            finally:
                self.recorder.work_ends()

        processes.TritonBenchmarkRequest.benchmark = told

    def _tell_algorithms(self, algorithms):
        log = algorithms.AlgorithmSelectorCache.log_results

        @functools.wraps(log)
        def told(name, inputs, timings, *arguments, **named):
            if timings:
                self._chose(name, min(timings, key=timings.get).name, len(timings))
            return log(name, inputs, timings, *arguments, **named)

        algorithms.AlgorithmSelectorCache.log_results = staticmethod(told)

    def _tell_launchers(self, heuristics):
        tune = heuristics.CachingAutotuner.autotune_to_one_config

        @functools.wraps(tune)
        def told(kernel, *arguments, **named):
            tried = len(kernel.launchers)
            tune(kernel, *arguments, **named)
            self._chose(kernel.fn.__name__, kernel.launchers[0].config, tried)

        heuristics.CachingAutotuner.autotune_to_one_config = told

    def _tell_configurations(self, autotuner):
        run = autotuner.Autotuner.run

        @functools.wraps(run)
        def told(kernel, *arguments, **named):
            known = len(kernel.cache)
            result = run(kernel, *arguments, **named)
            if len(kernel.cache) > known:
                name = getattr(kernel, "base_fn", kernel.fn).__name__
                self._chose(name, kernel.best_config, len(kernel.configs))
            return result

        autotuner.Autotuner.run = told
