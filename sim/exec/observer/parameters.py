"""The parameters of the program's models."""

import json
import weakref

from torch.nn.parameter import is_lazy

from .tensors import local, tell

# By this name torch.compile keeps the module that it was given.
COMPILED = "_orig_mod"


def path_of(name):
    """As it is without torch.compile."""
    return ".".join(part for part in name.split(".") if part != COMPILED).encode()


class Parameters:
    def __init__(self, recorder):
        self.recorder = recorder
        self.roots = weakref.WeakSet()  # outermost modules that were called
        self.names = {}  # by id of parameters
        self.named = []  # (weak reference to a parameter, name, whether it has a main gradient) of the roots
        self._trained = set()  # ids of parameters of which a step has found a gradient
        self._walked = weakref.WeakSet()  # roots
        self._records = {}  # by id of parameters

    def are_known(self):
        return len(self._walked) == len(self.roots) and all(known() is not None for known, *_ in self.named)

    def walk(self):
        """Finds all parameters, which takes long: a program's parameters seldom change."""
        self.named.clear()
        self.names.clear()
        self._trained.clear()
        self._walked.clear()
        self._records.clear()
        for root in list(self.roots):
            self._walked.add(root)
            for name, parameter in root.named_parameters():
                self.names[id(parameter)] = name = path_of(name)
                self.named.append((weakref.ref(parameter), name, hasattr(parameter, "main_grad")))

    def has_gradient(self, parameter):
        self._trained.add(id(parameter))

    def are_trained(self, module):
        """Where no step has found any gradient yet, or something else keeps them all: whether a parameter may
        have one."""
        if self._trained:
            return any(id(parameter) in self._trained for parameter in module.parameters())
        return any(parameter.requires_grad for parameter in module.parameters())

    def tell_root(self, root):
        self.roots.add(root)
        for name, parameter in root.named_parameters():
            self.tell(parameter, path_of(name))

    def tell(self, parameter, name):
        if is_lazy(parameter):
            return
        tell(self.recorder, parameter, b"parameter", name)
        held = local(parameter)
        self._records[id(parameter)] = {
            "name": name.decode(),
            "shape": list(held.shape),
            "dtype": held.type().rpartition(".")[2].removesuffix("Tensor"),
            "bytes": held.nbytes,
            "tensor_sharded": False,
            "shared_copy": False,
        }

    def send(self):
        self.recorder.parameters(json.dumps(list(self._records.values())).encode())
