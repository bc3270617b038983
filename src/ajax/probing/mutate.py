"""Faults made by themselves: the operators of `ajax.probing.operators` on an agent and the functions that it uses.

A mutation is a `Fault` with an id that stays the same while the lines it edits do, so that a survivor that was judged
equivalent can be written down.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ajax.probing.copies import PACKAGE, Copy
from ajax.probing.faults import Fault, Result, plant_all
from ajax.probing.operators import OPERATORS, Operator

SKIPPED = ("core/config.py", "core/agent.py")  # they hold configuration and protocol, nothing that is computed


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
    waiting: list[tuple[str, str | None]] = [(path, None)]
    while waiting:
        file, owner = waiting.pop()
        tree = ast.parse((root / PACKAGE / file).read_text())
        homes = {
            alias.asname or alias.name: (node.module or "").split(".")[1:]
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package)
            for alias in node.names
        }
        tops = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        scope: ast.AST = tree if owner is None else tops.get(owner, ast.Module([], []))
        names = {node.id for node in ast.walk(scope) if isinstance(node, ast.Name)}
        for name in names:
            if name in homes:
                home = "/".join(homes[name]) + ".py"
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


@dataclasses.dataclass(frozen=True)
class Stage:
    """Tests that every mutation meets which no earlier stage has killed: first what is cheap.

    Attributes:
        name: of its file of results.
        nodes: given a mutation, returns pytest nodes (files, folders) relative to the repository's tests/.
    """

    name: str
    nodes: Callable[[Mutation], Sequence[str]]


def run(
    made: Sequence[Mutation],
    stages: Sequence[Stage],
    root: Path,
    scratch: Path,
    *,
    copies: Path | None = None,
    workers: int | None = None,
    done: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Run stages of tests on every mutation, each until its first failure, and return the last results.

    Args:
        made: the mutations.
        stages: the tests.
        root: the repository.
        scratch: folder of each stage's results, `NAME.csv`, which an interrupted run goes on from, and of the compile
            cache.
        copies: folder of the copies; a folder in `scratch` by default.
        workers: see `plant_all`.
        done: called with each new result.

    Raises:
        RuntimeError: a node fails without any mutation.
    """
    copies, cache = copies or scratch / "copies", scratch / "cache"
    scratch.mkdir(parents=True, exist_ok=True)
    last: dict[str, Result] = {}
    for stage in stages:
        alive = [m for m in made if m.fault.id not in last or last[m.fault.id].status == "survived"]
        faults = [dataclasses.replace(m.fault, catches=tuple(nodes)) for m in alive if (nodes := stage.nodes(m))]
        results = scratch / f"{stage.name}.csv"
        if not results.exists():
            _check(root, copies / "control", cache, sorted({node for fault in faults for node in fault.catches}))
        found = plant_all(
            faults, root, copies, "tests", results, workers=workers, cache=cache, first=True, again=False, done=done
        )
        last |= {result.id: result for result in found}
    return [last[mutation.fault.id] for mutation in made if mutation.fault.id in last]


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


def _check(root: Path, folder: Path, cache: Path, nodes: Sequence[str]) -> None:
    """Check that the nodes pass without any mutation."""
    with Copy(root, folder, cache) as control:
        outcomes = control.run([f"tests/{node}" for node in nodes]) if nodes else {}
    failing = [node for node, (bad, _) in (outcomes or {}).items() if bad]
    if outcomes is None or failing:
        what = f"{', '.join(failing)} failed" if failing else "the tests took too long"
        raise RuntimeError(f"{what} without any mutation, so that no mutation can be judged")


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
