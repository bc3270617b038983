"""Faults made by themselves: operators on the syntax tree that make reinforcement learning's classic mistakes.

Every operator looks at one node and says what to write in its place. A mutation is a `Fault` with an id that stays
the same while the lines it edits do, so that a survivor that was judged equivalent can be written down.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ajax.probing.faults import PACKAGE, Fault, Result, copy, plant_all, run_nodes

Rewrite = Iterator[ast.expr]
SKIPPED = ("core/config.py", "core/agent.py")  # they hold configuration and protocol, nothing that is computed


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
    if _callee(node) in ("argmax", "argmin"):
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
    if _named(node) == "terminated":
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


@dataclasses.dataclass(frozen=True)
class Mutation:
    """A fault that an operator made.

    Attributes:
        fault: the edit.
        operator: what made it.
        diff: the edit as a unified diff.
    """

    fault: Fault
    operator: str
    diff: str


def mutations(root: Path, path: str, functions: Iterable[str] | None = None) -> list[Mutation]:
    """Return every mutation of one file.

    Args:
        root: the repository.
        path: the file, under src/ajax.
        functions: names of the functions and classes (with their methods) to mutate; all by default.
    """
    source = (root / PACKAGE / path).read_text()
    tree = ast.parse(source)
    networks = frozenset(
        field.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name == "State"
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    )
    chosen = None if functions is None else set(functions)
    found: dict[str, Mutation] = {}
    for owner in tree.body:
        if not isinstance(owner, ast.FunctionDef | ast.ClassDef) or (chosen is not None and owner.name not in chosen):
            continue
        for node in _expressions(owner):
            for operator in OPERATORS:
                for new in operator.rewrite(node, networks):
                    mutation = _mutation(path, source, node, new, operator)
                    if mutation is not None:
                        found.setdefault(mutation.fault.id, mutation)
    return list(found.values())


def used_functions(root: Path, path: str, package: str = "ajax.core") -> dict[str, set[str]]:
    """Return the functions and classes of `package` that a file uses, and those that these use, by file.

    Args:
        root: the repository.
        path: the file, under src/ajax.
        package: dotted name of the package that is followed.
    """
    used: dict[str, set[str]] = {}
    waiting = [(path, None)]
    while waiting:
        file, owner = waiting.pop()
        tree = ast.parse((root / PACKAGE / file).read_text())
        homes = {
            alias.asname or alias.name: node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package)
            for alias in node.names
        }
        tops = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        scope: ast.AST = tree if owner is None else tops.get(owner, ast.Module([], []))
        names = {node.id for node in ast.walk(scope) if isinstance(node, ast.Name)}
        for name in names:
            if name in homes:
                home = "/".join(homes[name].split(".")[1:]) + ".py"
            elif name in tops and owner is not None:
                home = file
            else:
                continue
            if (root / PACKAGE / home).exists() and name not in used.setdefault(home, set()):
                used[home].add(name)
                waiting.append((home, name))
    return used


def of_agent(root: Path, path: str, package: str = "ajax.core") -> list[Mutation]:
    """Return the mutations of an agent's file and of the functions of `package` that it uses.

    Args:
        root: the repository.
        path: the agent's file, under src/ajax.
        package: dotted name of the package whose functions are mutated too.
    """
    found = mutations(root, path)
    for file, names in sorted(used_functions(root, path, package).items()):
        if file != path and file not in SKIPPED:
            found += mutations(root, file, names)
    return found


def run(
    made: Sequence[Mutation],
    nodes: Sequence[str],
    root: Path,
    scratch: Path,
    memory: float | None = None,
    done: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Run pytest nodes on every mutation, each until its first failure, and return the results.

    Args:
        made: the mutations.
        nodes: pytest nodes (files, folders) relative to the repository's tests/.
        root: the repository.
        scratch: folder of the copies and of `mutations.csv`, which an interrupted run goes on from.
        memory: GiB to stay within.
        done: called with each new result.

    Raises:
        RuntimeError: a node fails without any mutation.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    control = run_nodes(copy(root, scratch / "control"), [f"tests/{node}" for node in nodes])
    failing = [node for node, (bad, _) in (control or {}).items() if bad]
    if control is None or failing:
        raise RuntimeError(
            f"without a mutation {', '.join(failing) or 'the run takes too long'}: nothing can be learned"
        )
    faults = [dataclasses.replace(mutation.fault, catches=tuple(nodes)) for mutation in made]
    return plant_all(faults, root, scratch, "tests", scratch / "mutations.csv", memory, first=True, done=done)


def score(made: Sequence[Mutation], results: Sequence[Result], equivalent: dict[str, str]) -> str:
    """Return the share killed, and every survivor with its diff.

    Args:
        made: the mutations.
        results: of their faults.
        equivalent: by id, why a survivor means the same as the source; it doesn't count.
    """
    by_id = {mutation.fault.id: mutation for mutation in made}
    counted = [result for result in results if result.id not in equivalent]
    killed = [result for result in counted if result.status != "survived"]
    share = 100 * len(killed) / max(len(counted), 1)
    lines = [f"{len(killed)} of {len(counted)} mutations killed ({share:.0f} %); {len(equivalent)} equivalent"]
    for result in counted:
        if result.status == "survived":
            lines += ["", f"survived: {result.id}", by_id[result.id].diff.rstrip()]
    return "\n".join(lines)


def _mutation(path: str, source: str, node: ast.expr, new: ast.expr, operator: Operator) -> Mutation | None:
    """Return the edit of `node`'s own lines (and as many before it as make them unique), or None if there is none."""
    lines = source.splitlines(keepends=True)
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    text = "".join(lines[first : last + 1])
    begin = len(lines[first].encode()[: node.col_offset].decode())
    end = len(text) - len(lines[last]) + len(lines[last].encode()[: node.end_col_offset].decode())
    written = ast.unparse(ast.fix_missing_locations(new))
    if written == ast.unparse(node):
        return None
    old, changed = text, f"{text[:begin]}({written}){text[end:]}"
    while source.count(old) > 1 and first > 0:
        first -= 1
        old, changed = lines[first] + old, lines[first] + changed
    try:
        ast.parse(source.replace(old, changed))
    except SyntaxError:
        return None
    fingerprint = hashlib.sha256(f"{path}{operator.name}{old}{changed}".encode()).hexdigest()[:8]
    fault = Fault(f"{Path(path).stem}-{operator.name}-{fingerprint}", path, old, changed, (), operator.mistake)
    diff = difflib.unified_diff(lines, fault.applied(source).splitlines(keepends=True), f"a/{path}", f"b/{path}", n=1)
    return Mutation(fault, operator.name, "".join(diff))


def _expressions(owner: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that a function or class computes with: no annotations, defaults or decorators."""
    if isinstance(owner, ast.FunctionDef):
        parts: list[ast.AST] = list(owner.body)
    elif isinstance(owner, ast.ClassDef):
        parts = [node for node in owner.body if isinstance(node, ast.FunctionDef)]
    elif isinstance(owner, ast.AnnAssign):
        parts = [owner.value] if owner.value is not None else []
    elif isinstance(owner, ast.Raise | ast.Assert | ast.JoinedStr):
        parts = []
    else:
        parts = list(ast.iter_child_nodes(owner))
    if isinstance(owner, ast.expr) and not _is_assigned(owner):
        yield owner
    for part in parts:
        yield from _expressions(part)


def _is_assigned(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Tuple) and isinstance(node.ctx, ast.Store)


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
