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


def is_not(condition):
    return isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not)


def asks_if_finite(condition):
    """Whether it is `torch.isfinite(norm)`, perhaps `.all()` of it, and nothing beside it."""
    parts = list(ast.walk(condition))
    is_one_thing = not any(isinstance(part, (ast.BoolOp, ast.Compare, ast.UnaryOp, ast.IfExp)) for part in parts)
    return is_one_thing and any(isinstance(part, ast.Attribute) and part.attr == "isfinite" for part in parts)


@functools.lru_cache
def checks_in(path):
    """What a file asserts, raises an exception without, or skips a step without because it is not finite,
    where that is sure to be of true values."""
    conditions = []
    for node in ast.walk(ast.parse("".join(linecache.getlines(path)))):
        if isinstance(node, ast.Assert):
            conditions.append(node.test)
        elif isinstance(node, ast.If):
            condition = node.test.operand if is_not(node.test) else node.test
            raises = is_not(node.test) and isinstance(node.body[-1], ast.Raise)
            if raises or asks_if_finite(condition):
                conditions.append(condition)
    return [condition for condition in conditions if not may_want_false(condition)]


def is_check(path, line):
    """Whether the statement at the line asks for what is true in a training that goes on."""
    try:
        return any(check.lineno <= line <= check.end_lineno for check in checks_in(path))
    except (SyntaxError, ValueError):
        return False
