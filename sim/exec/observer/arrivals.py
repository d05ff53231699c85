"""Modules of the program, as soon as they are loaded."""

import importlib.util
import sys


class Arrivals:
    def __init__(self):
        self._awaited = {}  # lists of functions, by name of the module
        sys.meta_path.insert(0, self)

    def watch(self, name, function):
        """Calls `function` with the module, once it is loaded."""
        if name in sys.modules:
            return function(sys.modules[name])
        self._awaited.setdefault(name, []).append(function)

    def find_spec(self, name, *_):
        functions = self._awaited.pop(name, None)
        spec = importlib.util.find_spec(name) if functions else None
        if spec is None:
            return None
        load = spec.loader.exec_module

        def load_and_tell(module):
            load(module)
            for function in functions:
                function(module)

        spec.loader.exec_module = load_and_tell
        return spec
