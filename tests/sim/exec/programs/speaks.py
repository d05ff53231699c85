"""Rank 0 ends well only if what it prints is heard while it runs: then the test makes the file."""

import os
import pathlib
import sys
import time

import torch

torch.zeros(1, device="cuda")
if os.environ["RANK"] == "0":
    print("is anybody there?", flush=True)
    heard = pathlib.Path(sys.argv[1])
    for _ in range(600):
        if heard.exists():
            break
        time.sleep(0.1)
    else:
        sys.exit("nobody")

import one_step
