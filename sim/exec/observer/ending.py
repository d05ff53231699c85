"""What is told when the program ends."""

import atexit
import os
import pathlib
import sys
import time

LONGEST_REST = 1000  # milliseconds


def works(task):
    """Whether it is a thread of autograd that has something to do."""
    try:
        name = (task / "comm").read_text()
        state = (task / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False  # it has ended
    return name.startswith("pt_autograd") and state != "S"


def let_autograd_rest():
    """A thread that takes the interpreter once that is torn down aborts the process. Those of autograd
    do, to drop functions that a backward called (fully_shard has some): here nothing takes long on the
    device, so that a program can be that fast to end after a backward."""
    rests = 0
    for _ in range(LONGEST_REST):
        time.sleep(1e-3)  # gives the interpreter away
        tasks = pathlib.Path("/proc/self/task").iterdir()
        rests = 0 if any(works(task) for task in tasks) else rests + 1
        if rests == 2:
            return


def exception_text():
    """Of the exception that ends the program, such as "ValueError: no such file"; "" if none does."""
    exception = getattr(sys, "last_value", None)  # Python keeps what nobody caught
    if exception is None:
        return ""
    return f"{type(exception).__name__}: {str(exception)}".splitlines()[0].removesuffix(": ")


def at_end(recorder, optimizers, parameters):
    def end():
        """After --steps the program stops where it was: there is nothing to tear down in order."""
        for optimizer in list(optimizers.unfinished):
            optimizers.after_step(optimizer)  # it ran out of memory, and holds what it had made
        parameters.send()
        if text := exception_text():
            recorder.raised(text.encode(errors="replace"))
        if not recorder.was_ended():
            return let_autograd_rest()
        if "multiprocessing.util" in sys.modules:
            sys.modules["multiprocessing.util"]._exit_function()  # ends data loaders' workers
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

    atexit.register(end)
