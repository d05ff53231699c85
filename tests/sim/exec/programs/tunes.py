"""Asks torch.compile's tuner for a faster configuration, as it does before it launches a kernel."""

import one_step
from torch._inductor.runtime import triton_heuristics

found = triton_heuristics.CachingAutotuner.coordinate_descent_tuning(None, "as it is", 1)
assert found == "as it is", found
