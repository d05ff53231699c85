"""Tells which lines of a program check what was computed."""

import ast
import functools
import linecache


def may_want_false(condition):
    """Whether it may be fulfilled by a value that is false: it has a `not`, or compares the value."""
    return any(
        isinstance(part, ast.Not)
        or (isinstance(part, ast.Constant) and part.value is False)
        or (isinstance(part, ast.Compare) and ".item()" in ast.unparse(part))
        for part in ast.walk(condition)
    )


@functools.lru_cache
def checks_in(path):
    """What a file asserts, or raises an exception without, where that is sure to be of true values."""
    conditions = []
    for node in ast.walk(ast.parse("".join(linecache.getlines(path)))):
        if isinstance(node, ast.Assert):
            conditions.append(node.test)
        elif isinstance(node, ast.If) and isinstance(node.test, ast.UnaryOp) and isinstance(node.body[-1], ast.Raise):
            if isinstance(node.test.op, ast.Not):
                conditions.append(node.test.operand)
    return [condition for condition in conditions if not may_want_false(condition)]


def is_check(path, line):
    """Whether the statement at the line ends in an exception unless what it asks is true."""
    try:
        return any(check.lineno <= line <= check.end_lineno for check in checks_in(path))
    except (SyntaxError, ValueError):
        return False
