"""The mutation operators on small sources, and a run of them on a repository of a few lines."""

from __future__ import annotations

import pytest

from ajax.probing.faults import read_results
from ajax.probing.mutate import Stage, mutations, of_agent, run, score, used_functions
from ajax.probing.operators import OPERATORS

AGENT = '''
from flax import struct
from ajax.core.returns import td
from ajax.core.keys import stream

class State:
    q: object
    target: object

class DQN:
    def update(self, state, b, key):
        """Docstrings - and a - b in them - stay."""
        q_next = state.target(b.next).max(-1)
        y = jax.lax.stop_gradient(td(b.reward, self.gamma, b.terminated, q_next))
        noise = jax.random.normal(stream(key, "noise"))
        q, metrics = descend(state.q, lambda q: (pick(q(b.now), b.action) - y).mean())
        if not ok:
            raise ValueError("a" + str(1 - 2))
        return State(q=q, target=select(n % 4 == 0, q, state.target))
'''
RETURNS = """
from ajax.core.mask import alive

def td(reward, gamma, terminated, value):
    return reward + gamma * (1 - terminated) * value

def unused(x):
    return x.max()
"""
UNIT = Stage("unit", lambda mutation: ["test_td.py"])
MASK = """
def alive(x):
    return 1 - x
"""


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "repository"
    files = {
        "src/ajax/__init__.py": "",
        "src/ajax/agents/dqn.py": AGENT,
        "src/ajax/core/returns.py": RETURNS,
        "src/ajax/core/keys.py": "def stream(key, name):\n    return fold_in(key, 1)\n",
        "src/ajax/core/mask.py": MASK,
        "tests/test_td.py": "from ajax.core.returns import td\n"
        "def test_td():\n    assert td(1.0, 0.5, 0, 8.0) == 5.0\n    assert td(1.0, 0.5, 1, 8.0) == 1.0\n",
        "pyproject.toml": "[tool.pytest.ini_options]\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def changes(root, path: str) -> dict[str, list[str]]:
    """The lines that each operator writes."""
    found: dict[str, list[str]] = {}
    for mutation in mutations(root, path):
        added = [line[1:].strip() for line in mutation.diff.splitlines()[2:] if line.startswith("+")]
        found.setdefault(mutation.operator, []).append(" ".join(added))
    return found


@pytest.mark.parametrize(
    ("operator", "line"),
    [
        ("max-to-mean", "q_next = (state.target(b.next).mean(-1))"),
        ("swap-networks", "q_next = (state.q)(b.next).max(-1)"),
        ("drop-stop-gradient", "y = (td(b.reward, self.gamma, b.terminated, q_next))"),
        ("swap-flags", "y = jax.lax.stop_gradient(td(b.reward, self.gamma, (b.truncated), q_next))"),
        (
            "merge-flags",
            "y = jax.lax.stop_gradient(td(b.reward, self.gamma, (jnp.maximum(b.terminated, b.truncated)), q_next))",
        ),
        ("drop-discount", "y = jax.lax.stop_gradient(td(b.reward, (1.0), b.terminated, q_next))"),
        ("square-discount", "y = jax.lax.stop_gradient(td(b.reward, (self.gamma ** 2), b.terminated, q_next))"),
        ("reuse-key", "noise = jax.random.normal((key))"),
        ("shift-index", "q, metrics = descend(state.q, lambda q: ((pick(q(b.now), b.action - 1)) - y).mean())"),
        ("flip-sign", "q, metrics = descend(state.q, lambda q: ((pick(q(b.now), b.action) + y)).mean())"),
        ("mean-to-sum", "q, metrics = descend(state.q, lambda q: ((pick(q(b.now), b.action) - y).sum()))"),
        ("skip-update", "return (State(q=state.q, target=select(n % 4 == 0, q, state.target)))"),
        ("always", "return State(q=q, target=select((n % 4 >= 0), q, state.target))"),
        ("swap-arms", "return State(q=q, target=(select(n % 4 == 0, state.target, q)))"),
    ],
)
def test_operators(repository, operator, line):
    assert line in changes(repository, "agents/dqn.py")[operator]


def test_every_mutation_is_one_edit_that_parses(repository):
    made = of_agent(repository, "agents/dqn.py")
    assert len({mutation.fault.id for mutation in made}) == len(made) > 25
    for mutation in made:
        source = (repository / "src/ajax" / mutation.fault.path).read_text()
        compile(mutation.fault.applied(source), mutation.fault.path, "exec")
        assert mutation.diff.count("\n-") == 1 == mutation.diff.count("\n+") - 1  # the header has a plus line
    assert not any("Docstrings" in m.fault.old.splitlines()[-1] or "raise" in m.fault.old for m in made)


def test_only_functions_that_the_agent_uses_are_mutated(repository):
    assert used_functions(repository, "agents/dqn.py") == {"core/returns.py": {"td"}, "core/keys.py": {"stream"}}
    made = of_agent(repository, "agents/dqn.py")
    assert {m.fault.path for m in made} == {"agents/dqn.py", "core/returns.py", "core/keys.py"}
    assert not any("x.mean" in m.fault.new for m in made)


def test_ids_do_not_depend_on_other_lines(repository):
    before = {m.fault.id for m in mutations(repository, "core/returns.py")}
    file = repository / "src/ajax/core/returns.py"
    file.write_text("# a line above\n" + file.read_text())
    assert {m.fault.id for m in mutations(repository, "core/returns.py")} == before


def test_operators_have_names_of_their_own():
    assert len({operator.name for operator in OPERATORS}) == len(OPERATORS)


def test_a_run_reports_survivors_with_their_diffs(repository, tmp_path):
    file = repository / "src/ajax/core/returns.py"
    file.write_text(RETURNS.replace("* value", "* value * 1.0"))
    made = mutations(repository, "core/returns.py", ["td"])
    chosen = [m for m in made if m.operator in ("drop-discount", "drop-cut") or m.fault.new.endswith("(1.0)\n")]
    chosen += [m for m in made if "(gamma * (1 - terminated) * value)\n" in m.fault.new]
    results = run(chosen, [UNIT], repository, tmp_path / "scratch")
    text = score(chosen, results, {})
    survivor = next(m for m in chosen if "(gamma * (1 - terminated) * value)\n" in m.fault.new)
    assert text.splitlines()[0] == f"{len(chosen) - 1} of {len(chosen)} mutations killed (75 %); 0 equivalent"
    assert (
        f"survived: {survivor.fault.id}" in text and "+    return reward + (gamma * (1 - terminated) * value)" in text
    )
    excused = score(chosen, results, {survivor.fault.id: "multiplying by 1 changes nothing"})
    assert excused == "3 of 3 mutations killed (100 %); 1 equivalent"


def test_a_later_stage_meets_survivors_alone(repository, tmp_path):
    (repository / "tests/test_weak.py").write_text("def test_nothing():\n    pass\n")
    made = [m for m in mutations(repository, "core/returns.py", ["td"]) if m.operator in ("drop-discount", "drop-cut")]
    stages = [UNIT, Stage("weak", lambda mutation: ["test_weak.py"])]
    ran = []
    results = run(made, stages, repository, tmp_path, workers=1, done=lambda result: ran.append(result.id))
    assert {result.status for result in results} == {"caught"} and len(ran) == len(made)
    results = run(made, stages[::-1], repository, tmp_path, workers=1, done=lambda result: ran.append(result.id))
    assert {result.status for result in results} == {"caught"}
    assert len(ran) == 2 * len(made)  # the unit tests' results are known by then
    assert {result.status for result in read_results(tmp_path / "weak.csv")} == {"survived"}


def test_a_run_needs_tests_that_pass_without_mutations(repository, tmp_path):
    (repository / "tests/test_td.py").write_text("def test_td():\n    assert False\n")
    with pytest.raises(RuntimeError, match="test_td::test_td failed without any mutation"):
        run(mutations(repository, "core/returns.py"), [UNIT], repository, tmp_path / "scratch")
