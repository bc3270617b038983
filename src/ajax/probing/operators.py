"""Mutation operators: reinforcement learning's classic mistakes, each as a rewriting of one node of a syntax tree."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterator

Rewrite = Iterator[ast.expr]


@dataclasses.dataclass(frozen=True)
class Operator:
    """One kind of mistake.

    Attributes:
        name: in the mutation's id.
        rewrite: given an expression and the names that its file's networks go by, yields what replaces it.
        mistake: the named mistake that it amounts to where it concerns a target; empty if that depends.
    """

    name: str
    rewrite: Callable[[ast.AST, frozenset[str]], Rewrite]
    mistake: str = ""


def _callee(node: ast.AST) -> str:
    """Return the last name of what is called: `max` for jnp.max(x) and x.max()."""
    if not isinstance(node, ast.Call):
        return ""
    called = node.func
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def _renamed(old: str, new: str) -> Callable[[ast.AST, frozenset[str]], Rewrite]:
    """Call `new` where `old` is called."""

    def rewrite(node: ast.AST, networks: frozenset[str]) -> Rewrite:
        if isinstance(node, ast.Call) and _callee(node) == old and isinstance(node.func, ast.Attribute):
            yield ast.Call(ast.Attribute(node.func.value, new, ast.Load()), node.args, node.keywords)

    return rewrite


def _unwrapped(*names: str) -> Callable[[ast.AST, frozenset[str]], Rewrite]:
    """Write a call's first argument in its place."""

    def rewrite(node: ast.AST, networks: frozenset[str]) -> Rewrite:
        if isinstance(node, ast.Call) and _callee(node) in names and node.args:
            yield node.args[0]

    return rewrite


def _swap_arms(node: ast.AST, networks: frozenset[str]) -> Rewrite:
    if isinstance(node, ast.Call) and _callee(node) in ("where", "select") and len(node.args) == 3:
        condition, first, second = node.args
        yield ast.Call(node.func, [condition, second, first], node.keywords)


def _shift_index(node: ast.AST, networks: frozenset[str]) -> Rewrite:
    if isinstance(node, ast.Call) and _callee(node) in ("argmax", "argmin"):
        yield ast.BinOp(node, ast.Sub(), ast.Constant(1))
    if isinstance(node, ast.Call) and _callee(node) == "pick" and len(node.args) == 2:
        values, index = node.args
        yield ast.Call(node.func, [values, ast.BinOp(index, ast.Sub(), ast.Constant(1))], [])


def _swap_flags(node: ast.AST, networks: frozenset[str]) -> Rewrite:
    other = {"terminated": "truncated", "truncated": "terminated"}
    name = _named(node)
    if name in other:
        yield _with_name(node, other[name])


def _merge_flags(node: ast.AST, networks: frozenset[str]) -> Rewrite:
    if isinstance(node, ast.expr) and _named(node) == "terminated":
        both = [node, _with_name(node, "truncated")]
        yield ast.Call(ast.Attribute(ast.Name("jnp"), "maximum", ast.Load()), both, [])


def _drop_cut(node: ast.AST, networks: frozenset[str]) -> Rewrite:
    """Write 1 for `1 - terminated`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub) or not _is_one(node.left):
        return
    if _named(node.right) in ("terminated", "truncated", "ended", "term", "end"):
        yield ast.Constant(1.0)


def _flip_sign(node: ast.AST, networks: frozenset[str]) -> Rewrite:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
        yield node.operand
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and not _is_text(node):
        yield ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right)


def _drop_term(node: ast.AST, networks: frozenset[str]) -> Rewrite:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub) or _is_text(node):
        return
    if not isinstance(node.right, ast.Constant) and not _is_one(node.left):
        yield node.left


def _is_discount(node: ast.AST) -> bool:
    return _named(node) in ("gamma", "discount")


def _drop_discount(node: ast.AST, networks: frozenset[str]) -> Rewrite:
    if isinstance(node, ast.expr) and _is_discount(node):
        yield ast.Constant(1.0)


def _square_discount(node: ast.AST, networks: frozenset[str]) -> Rewrite:
    if isinstance(node, ast.expr) and _is_discount(node):
        yield ast.BinOp(node, ast.Pow(), ast.Constant(2))


def _invert_discount(node: ast.AST, networks: frozenset[str]) -> Rewrite:
    if isinstance(node, ast.expr) and _is_discount(node):
        yield ast.BinOp(ast.Constant(1.0), ast.Sub(), node)


def _drop_factor(node: ast.AST, networks: frozenset[str]) -> Rewrite:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        yield node.left
        if isinstance(node.op, ast.Mult):
            yield node.right


def _reuse_key(node: ast.AST, networks: frozenset[str]) -> Rewrite:
    if isinstance(node, ast.Call) and _callee(node) in ("stream", "fold_in") and len(node.args) == 2:
        yield node.args[0]


def _fix_key(node: ast.AST, networks: frozenset[str]) -> Rewrite:
    if isinstance(node, ast.Call) and _callee(node) in ("stream", "fold_in") and len(node.args) == 2:
        yield ast.Call(node.func, [ast.parse("jax.random.key(0)", mode="eval").body, node.args[1]], [])


def _swap_networks(node: ast.AST, networks: frozenset[str]) -> Rewrite:
    """Read another network of the state: the online one for the target, the target for the online one."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "state":
        for name in sorted(networks):
            if name != node.attr and ("target" in name) != ("target" in node.attr) and node.attr in networks:
                yield _with_name(node, name)


def _skip_update(node: ast.AST, networks: frozenset[str]) -> Rewrite:
    """Keep a network of the state as it was."""
    if not isinstance(node, ast.Call) or _callee(node) not in ("State", "replace"):
        return
    for i, keyword in enumerate(node.keywords):
        old = ast.Attribute(ast.Name("state"), keyword.arg or "", ast.Load())
        if keyword.arg in networks and ast.unparse(keyword.value) != ast.unparse(old):
            kept = ast.keyword(keyword.arg, old)
            yield ast.Call(node.func, node.args, [*node.keywords[:i], kept, *node.keywords[i + 1 :]])
    for i, value in enumerate(node.args):
        if isinstance(value, ast.Name) and value.id in networks:
            old = ast.Attribute(ast.Name("state"), value.id, ast.Load())
            yield ast.Call(node.func, [*node.args[:i], old, *node.args[i + 1 :]], node.keywords)


def _always(node: ast.AST, networks: frozenset[str]) -> Rewrite:
    """Do every time what is done every n-th time."""
    if isinstance(node, ast.Compare) and isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Mod):
        yield ast.Compare(node.left, [ast.GtE()], [ast.Constant(0)])


def _compare(node: ast.AST, networks: frozenset[str]) -> Rewrite:
    other = {ast.Lt: ast.GtE, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.GtE: ast.Lt, ast.Eq: ast.NotEq}
    if isinstance(node, ast.Compare) and type(node.ops[0]) in other:
        yield ast.Compare(node.left, [other[type(node.ops[0])]()], node.comparators)


def _turn_scan(node: ast.AST, networks: frozenset[str]) -> Rewrite:
    if isinstance(node, ast.Call) and any(k.arg == "reverse" for k in node.keywords):
        yield ast.Call(node.func, node.args, [k for k in node.keywords if k.arg != "reverse"])


OPERATORS = (
    Operator("max-to-mean", _renamed("max", "mean")),
    Operator("min-to-max", _renamed("min", "max")),
    Operator("min-to-mean", _renamed("min", "mean")),
    Operator("minimum-to-maximum", _renamed("minimum", "maximum")),
    Operator("maximum-to-minimum", _renamed("maximum", "minimum")),
    Operator("argmax-to-argmin", _renamed("argmax", "argmin")),
    Operator("mean-to-sum", _renamed("mean", "sum")),
    Operator("sum-to-mean", _renamed("sum", "mean")),
    Operator("sample-to-mode", _renamed("sample", "mode")),
    Operator("drop-stop-gradient", _unwrapped("stop_gradient")),
    Operator("drop-clip", _unwrapped("clip")),
    Operator("drop-exp", _unwrapped("exp")),
    Operator("drop-square", _unwrapped("square")),
    Operator("swap-arms", _swap_arms),
    Operator("shift-index", _shift_index),
    Operator("swap-flags", _swap_flags),
    Operator("merge-flags", _merge_flags, "time limit taken as a termination"),
    Operator("drop-cut", _drop_cut),
    Operator("flip-sign", _flip_sign),
    Operator("drop-term", _drop_term),
    Operator("drop-discount", _drop_discount, "no discount"),
    Operator("square-discount", _square_discount, "discount squared"),
    Operator("invert-discount", _invert_discount, "1 - discount for the discount"),
    Operator("drop-factor", _drop_factor),
    Operator("reuse-key", _reuse_key),
    Operator("fix-key", _fix_key),
    Operator("swap-networks", _swap_networks),
    Operator("skip-update", _skip_update),
    Operator("always", _always),
    Operator("turn-comparison", _compare),
    Operator("turn-scan", _turn_scan),
)


def _named(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _with_name(node: ast.AST, name: str) -> ast.expr:
    return ast.Attribute(node.value, name, ast.Load()) if isinstance(node, ast.Attribute) else ast.Name(name)


def _is_one(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in (1, 1.0)


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(isinstance(side, ast.JoinedStr | ast.List) or _is_string(side) for side in sides)


def _is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
