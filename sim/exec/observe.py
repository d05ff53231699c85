"""Starts the observer inside a program: the recorder runs this once, with `recorder_path` set."""


def observe(recorder_path):
    import importlib.util
    import pathlib
    import sys

    name = "onerank_observer"  # of the program's own modules none has it
    folder = pathlib.Path(recorder_path).parent / "observer"
    found = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    sys.modules[name] = observer = importlib.util.module_from_spec(found)
    found.loader.exec_module(observer)
    observer.start(recorder_path)


observe(recorder_path)
