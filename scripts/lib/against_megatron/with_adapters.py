"""Runs a program of Megatron-LM, the first argument, with adapters of Megatron-Bridge in its model, as the recipes of
Megatron-Bridge put them there: before it is wrapped for training.

Of Megatron-Bridge only the files of its adapters are read (peft/ and what they import). ONERANK_BRIDGE is its
checkout; ONERANK_ADAPTERS are the arguments of its LoRA, as JSON."""
import json
import os
import pathlib
import runpy
import sys
import types

BRIDGE = pathlib.Path(os.environ["ONERANK_BRIDGE"]) / "src/megatron/bridge"


def add_package(name):
    """Without running its __init__.py, which imports all of Megatron-Bridge."""
    module = types.ModuleType(name)
    module.__path__ = [str(BRIDGE.joinpath(*name.split(".")[2:]))]
    sys.modules[name] = module


def add_adapters(model_config):
    from megatron.bridge.peft.lora import LoRA
    lora = LoRA(**json.loads(os.environ["ONERANK_ADAPTERS"]))
    model_config.pre_wrap_hooks.append(lambda chunks: lora(chunks, training=True))
    return model_config


def main():
    for name in ("megatron.bridge", "megatron.bridge.peft", "megatron.bridge.utils"):
        add_package(name)
    common = sys.modules["megatron.bridge.utils.common_utils"] = types.ModuleType("common_utils")
    common.print_rank_0 = print

    from megatron.training import argument_utils
    make_config = argument_utils.gpt_config_from_args
    argument_utils.gpt_config_from_args = lambda *words, **named: add_adapters(make_config(*words, **named))
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
