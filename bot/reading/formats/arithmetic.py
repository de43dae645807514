"""Sums of literals and names, worked out on the syntax tree; nothing is evaluated by Python itself."""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

LONGEST = 300
LARGEST = 1e15
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def worked_out(text: str, names: Mapping[str, Any]) -> float | None:
    """The value of a shell's sum; None for anything else. Division is the shell's, without a remainder."""
    if len(text) > LONGEST:
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return _value(tree, names)


def _value(node: ast.expr, names: Mapping[str, Any]) -> float | None:
    if isinstance(node, ast.Constant):
        return float(node.value) if isinstance(node.value, (int, float)) and not isinstance(node.value, bool) else None
    if isinstance(node, ast.Name):
        return _as_number(names.get(node.id))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _value(node.operand, names)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, names), _value(node.right, names)
        whole = isinstance(node.op, ast.Div)
        return None if left is None or right is None else combined(ast.FloorDiv() if whole else node.op, left, right)
    return None


def combined(operation: ast.operator, left: float, right: float) -> float | None:
    """Two numbers under an operation that stays small; None for others, for division by nothing and for overflow."""
    work = _OPERATIONS.get(type(operation))
    if work is None or (isinstance(operation, (ast.Div, ast.FloorDiv, ast.Mod)) and right == 0):
        return None
    try:
        value = work(left, right)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if isinstance(value, (int, float)) and abs(value) <= LARGEST else None


def _as_number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
