"""What `import ajax` gives: every name, lazily."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import ajax


@pytest.mark.parametrize("name", ajax.__all__)
def test_every_public_name_is_there_and_documented(name):
    assert getattr(ajax, name).__doc__
    assert name in dir(ajax)


def test_importing_loads_no_jax_and_an_agent_no_environment():
    code = (
        "import sys, ajax; assert not {'jax', 'numpy', 'flax'} & set(sys.modules);"
        "ajax.PPO; assert 'jax' in sys.modules;"
        "assert not {'gymnax', 'gymnasium', 'matplotlib', 'pandas', 'ajax.training.driver'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_lists_those_that_exist():
    with pytest.raises(AttributeError, match=r"module 'ajax' has no attribute 'A3C'\. It has .*PPO"):
        _ = ajax.A3C


def test_the_version_is_that_of_the_package():
    assert re.fullmatch(r"\d+\.\d+\.\d+", ajax.__version__)
