"""Routers of experts that are kernels of an extension: that they have chosen, and where it is marked."""

import functools
import math

import torch

from .harmless import harmless

# Of TransformerEngine, from 2.6: each gives scores, the map of tokens and experts, and what its backward needs.
FUSED_ROUTERS = ("fused_topk_with_score_function_fwd", "fused_score_for_moe_aux_loss_fwd")


def choices_of(logits, topk, *_, **__):
    """How many experts each token takes, of the arguments of a fused router."""
    return topk


class Routers:
    def __init__(self, recorder, arrivals):
        self.recorder = recorder
        self._chose = harmless(self._tell_choice)
        arrivals.watch("transformer_engine.pytorch.router", self._watch)

    def _watch(self, module):
        for name in FUSED_ROUTERS:
            if router := getattr(module.tex, name, None):
                setattr(module.tex, name, self._telling(router, name))

    def _telling(self, router, name):
        @functools.wraps(router)
        def told(*arguments, **named):
            results = router(*arguments, **named)
            self._chose(name, results[1], choices_of(*arguments, **named))
            return results

        return told

    def _tell_choice(self, name, routes, choices):
        """Routes that are packed into bits are not told: only kernels read them."""
        if routes.dtype == torch.bool and routes.is_contiguous():
            *tokens, experts = routes.shape
            self.recorder.experts_chosen(routes.data_ptr(), math.prod(tokens), experts, choices, name.encode())
