"""What only Python knows of a program: which module runs, and what lasting memory is for.

Modules are told around every call of one (modules.py), memory by hooks of torch.optim around every
optimizer step (optimizers.py): where torch.compile made that, around the compiled code that holds it
(compiled_steps.py). What the kernels of torch.compile are given is told at their launches (compiler.py),
and the blocks of masks of flex_attention (flex_attention.py); what tuners choose, when they have
(tuning.py), and that routers of extensions have chosen experts (routers.py). The recorder asks which lines check what was
computed (checks.py). The rest is what these need: the recorder's functions, tensors, parameters, modules
as they are loaded, what the program saves (saving.py), how long it sleeps and loads data (waits.py), its end.
"""

from . import checks as checks  # the recorder asks it
from . import flex_attention, saving
from .arrivals import Arrivals
from .compiled_steps import CompiledSteps
from .compiler import Compiler
from .ending import at_end
from .modules import Modules
from .optimizers import Optimizers
from .parameters import Parameters
from .recorder import Recorder
from .routers import Routers
from .tuning import Tuning
from .waits import Waits


def start(recorder_path):
    recorder = Recorder(recorder_path)
    parameters = Parameters(recorder)
    modules = Modules(recorder, parameters)
    optimizers = Optimizers(recorder, parameters)
    at_end(recorder, optimizers, parameters)  # early, so that the program's own handlers run before it
    modules.watch()
    arrivals = Arrivals()
    saving.watch(recorder, arrivals)
    Compiler(recorder, arrivals, flex_attention.watched(recorder))
    Tuning(recorder, arrivals)
    Routers(recorder, arrivals)
    Waits(recorder, arrivals)
    CompiledSteps(recorder, optimizers).watch()
