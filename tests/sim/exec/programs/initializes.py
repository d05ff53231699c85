"""Wakes the GPU, and asks it for nothing."""

import torch

torch.cuda.init()
