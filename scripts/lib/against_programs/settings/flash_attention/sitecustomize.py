"""Attention of the flash kernels, which torch took by itself when the figures were published, not cuDNN's."""
import os

# Python is also asked where its torch is.
if "ONERANK_EXEC_WANTED_RANK" in os.environ:
    import torch

    torch.backends.cuda.enable_cudnn_sdp(False)
