"""Other libraries' agents as subjects: what is known without the libraries, and with them, what mistakes are called."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

from ajax.core.errors import CapabilityError, ConfigError, UnknownName
from ajax.probing import judge
from ajax.probing.baselines import PACKAGES, BaselinesTrained, Decay, origin, package
from ajax.probing.commands import probe
from ajax.probing.subjects import Subject, load_class
from ajax.probing.suites import agent_of, baselines, peers
from ajax.probing.suites.action_box.ppo import BOX
from ajax.probing.suites.baselines import settings
from ajax.probing.suites.value_chains.boxes import BOXED
from ajax.probing.suites.value_chains.discrete import CHAIN

LEARNERS = Path(__file__).parent / "learners"
AGENTS = [(library, agent) for library in PACKAGES for agent in settings.SETTINGS]


@pytest.fixture(autouse=True)
def libraries_promote_ranks():
    """Theirs is not held to our rule on shapes."""
    with jax.numpy_rank_promotion("allow"):
        yield


def probed(*arguments):
    return CliRunner().invoke(probe, [str(argument) for argument in arguments])


def read_off(trained: BaselinesTrained) -> np.ndarray:
    if trained.agent == "PPO":
        return trained.v(trained.spec.obs)
    return trained.q(trained.spec.obs, None if trained.spec.box is None else np.zeros((trained.spec.n_states, 1)))


def test_settings_are_pinned():
    """Change a setting only together with a fresh calibration, then pin the value shown here."""
    assert settings.digest() == settings.DIGEST


def test_every_agent_has_cases_under_its_name():
    assert {agent_of(case) for case in peers.CASES.values()} == {f"{library}:{agent}" for library, agent in AGENTS}
    assert all(case.tolerances for case in peers.CASES.values())


def test_a_subclass_has_the_cases_of_its_agent():
    class Mine:
        pass

    ours, theirs = baselines.cases("sb3", "SAC", Mine), baselines.cases("sb3", "SAC")
    assert [case.id for case in ours] == ["p0a-Mine", "p6-Mine"]
    assert [(case.budget, case.tolerances) for case in ours] == [(case.budget, case.tolerances) for case in theirs]


def test_what_is_not_there(monkeypatch):
    with pytest.raises(UnknownName, match="Known: sb3, sbx"):
        baselines.cases("sb4", "DQN")
    with pytest.raises(UnknownName, match="Did you mean 'DQN'"):
        baselines.cases("sb3", "DQM")
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    with pytest.raises(ConfigError, match=r"'stable_baselines3': pip install stable-baselines3$"):
        package("sb3")
    assert "pip install" in str(probed("sb3:DQN").exception)
    assert "--module" in str(probed("sb3:DQN", "--module", "value_chains").exception)


def test_a_subclass_is_recognized_without_an_import(monkeypatch):
    fake = ModuleType("stable_baselines3")
    fake.DQN = type("DQN", (), {})
    monkeypatch.setitem(sys.modules, "stable_baselines3", fake)
    assert origin(type("Mine", (fake.DQN,), {}), ("DQN", "PPO")) == ("sb3", "DQN")
    assert origin(type("Mine", (), {}), ("DQN", "PPO")) is None


def test_a_rate_decays_with_what_remains_of_the_run():
    assert [Decay(3.0, 1.0)(remaining) for remaining in (1.0, 0.5, 0.0)] == [3.0, 2.0, 1.0]


def test_what_an_agent_does_not_learn():
    with pytest.raises(CapabilityError, match="sb3:PPO learns no Q"):
        BaselinesTrained("sb3:PPO", "sb3", "PPO", CHAIN, ()).q(CHAIN.obs)
    with pytest.raises(CapabilityError, match="sb3:DQN learns no V"):
        BaselinesTrained("sb3:DQN", "sb3", "DQN", CHAIN, ()).v(CHAIN.obs)


@pytest.mark.slow
@pytest.mark.parametrize(("library", "agent"), AGENTS)
def test_untrained_models_are_read(library, agent):
    pytest.importorskip(PACKAGES[library])
    subject, discrete = settings.make(library, agent), agent in ("DQN", "PPO")
    assert isinstance(subject, Subject)
    spec = CHAIN if discrete else BOXED
    trained = subject.train(spec, 0, [0, 1])
    assert trained.act(spec.obs).shape == ((2, 3) if discrete else (2, 3, 1))
    if agent == "PPO":
        assert subject.train(BOX, 0, [0]).act(BOX.obs).shape == (1, 4, 1)
    read = read_off(trained)
    assert read.shape == ((2, 3, 3) if agent == "DQN" else (2, 3))
    assert not np.allclose(read[0], read[1])
    if agent == "DQN":
        np.testing.assert_array_equal(trained.act(spec.obs), read.argmax(-1))


@pytest.mark.slow
@pytest.mark.parametrize("agent", settings.SETTINGS)
def test_seeds_that_share_compiled_functions_train_as_they_would_alone(agent):
    pytest.importorskip("sbx")
    subject, spec = settings.make("sbx", agent), CHAIN if agent in ("DQN", "PPO") else BOXED
    both, alone = (read_off(subject.train(spec, 600, seeds)) for seeds in ([0, 1], [1]))
    np.testing.assert_allclose(both[1], alone[0], rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "case", "mistake"),
    [
        ("MeanDQN", "p0a", "mean instead of max in the bootstrap"),
        ("TimeLimitDQN", "p6d", "time limit taken as a termination"),
        ("NoJacobianSAC", "p0a", "no tanh Jacobian"),
    ],
)
def test_a_mistake_in_a_subclass_is_named(name, case, mistake):
    pytest.importorskip("stable_baselines3")
    cls = load_class(f"{LEARNERS / 'sb3_mistakes.py'}:{name}").make
    found = {one.id: one for one in baselines.cases(*origin(cls, tuple(baselines.BUILDERS)), cls)}
    verdict = judge(found[f"{case}-{name}"])
    assert not verdict.passed
    assert verdict.diagnosis.near and verdict.diagnosis.mistakes[0] == mistake, verdict.text


@pytest.mark.slow
def test_a_file_of_pytorch_is_probed():
    pytest.importorskip("torch")
    file = LEARNERS / "torch_dqn.py"
    done = probed(f"{file}:TorchDQN", "--budget", 2500)
    assert done.exit_code == 0, done.output
    done = probed(f"{file}:MeanTorchDQN", "--budget", 2500)
    assert done.exit_code == 1 and "mean instead of max" in " ".join(done.output.replace("│", "").split())
