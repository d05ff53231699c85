"""What only Python knows of a program: which module runs, and what lasting memory is for.

Modules are told around every call of one (modules.py), memory by hooks of torch.optim around every
optimizer step (optimizers.py): where torch.compile made that, around the compiled code that holds it
(compiled_steps.py). The rest is what these need: the recorder's functions, tensors, parameters, the
compiler, the end of the program.
"""

from .compiled_steps import CompiledSteps
from .compiler import Compiler
from .ending import at_end
from .modules import Modules
from .optimizers import Optimizers
from .parameters import Parameters
from .recorder import Recorder


def start(recorder_path):
    recorder = Recorder(recorder_path)
    compiler = Compiler(recorder)
    parameters = Parameters(recorder)
    modules = Modules(recorder, compiler, parameters)
    optimizers = Optimizers(recorder, compiler, parameters)
    at_end(recorder, optimizers, parameters)  # early, so that the program's own handlers run before it
    modules.watch()
    CompiledSteps(recorder, optimizers).watch()
