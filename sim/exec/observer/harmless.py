"""For what the program does not depend on, nor its compiler."""

import traceback


def harmless(tell):
    """`tell`, but an error is printed, and the program goes on."""

    def told(*arguments):
        try:
            tell(*arguments)
        except Exception:
            traceback.print_exc()

    return told
