"""This library."""

from __future__ import annotations

from typing import Any

from benchmarks import child, work


def ppo():
    """PPO on the common work."""
    from ajax import PPO, Rollout, Torso

    w = work.PPO
    return PPO(
        rollout=Rollout(n_envs=w.n_envs, n_steps=w.n_steps, n_epochs=w.n_epochs, n_minibatches=w.n_minibatches),
        torso=Torso(widths=w.widths, activation="tanh", initializer="orthogonal"),
        learning_rate=w.learning_rate,
        max_grad_norm=w.max_grad_norm,
        entropy_coef=w.entropy_coef,
    )


def pqn():
    """PQN on the common work."""
    from ajax import PQN, Rollout, Torso

    w = work.PQN
    return PQN(
        rollout=Rollout(n_envs=w.n_envs, n_steps=w.n_steps, n_epochs=w.n_epochs, n_minibatches=w.n_minibatches),
        torso=Torso(widths=w.widths, layer_norm=True),
        learning_rate=w.learning_rate,
        max_grad_norm=w.max_grad_norm,
    )


def dqn():
    """DQN on the common work."""
    from ajax import DQN

    w = work.DQN
    return DQN(**_off_policy(w), target_period=w.refresh)


def sac():
    """SAC on the common work."""
    from ajax import SAC

    return SAC(**_off_policy(work.SAC), actor_learning_rate=work.SAC.learning_rate)


def td3():
    """TD3 on the common work."""
    from ajax import TD3

    return TD3(**_off_policy(work.TD3))


def redq():
    """REDQ on the common work."""
    from ajax import REDQ

    return REDQ(**_off_policy(work.REDQ), actor_learning_rate=work.REDQ.learning_rate)


def crossq():
    """CrossQ on the common work."""
    from ajax import CrossQ

    w = work.CrossQ
    options = _off_policy(w)
    return CrossQ(**options, critic_torso=options["torso"], actor_learning_rate=w.learning_rate)


def _off_policy(w: work.OffPolicy) -> dict[str, Any]:
    from ajax import Replay, Torso

    return {
        "replay": Replay(capacity=w.capacity, batch_size=w.batch_size, warmup=w.warmup, updates=w.per_step),
        "torso": Torso(widths=w.widths, activation="relu"),
        "learning_rate": w.learning_rate,
    }


def _steady(make, w: work.OnPolicy | work.OffPolicy, seeds: int) -> dict[str, Any]:
    agent, steps = make(), w.steps(seeds)

    def train() -> None:
        agent.train(w.env, steps, seeds=seeds, evaluations=1, episodes=0, progress=False)

    amount = seeds * steps if isinstance(w, work.OnPolicy) else w.done(seeds)
    return child.first_and_rates(train, amount)  # the first call compiles, the others find the programs


def newcomer(seeds: int) -> dict[str, Any]:
    """Train a first agent and evaluate it."""
    result = ppo().train(
        work.PPO.env, work.NEWCOMER_STEPS, seeds=1, evaluations=1, episodes=work.EVALUATION_EPISODES, progress=False
    )
    return {"return": float(result.returns[0, -1])}


def import_agent(seeds: int) -> dict[str, Any]:
    """Import the package, then an agent, each beside the three libraries that any JAX agent needs."""

    def package() -> None:
        import ajax  # noqa: F401

    def agent() -> None:
        from ajax import PPO  # noqa: F401

    return {"package": child.seconds(package), "seconds": child.seconds(agent)}


if __name__ == "__main__":
    child.main(
        {
            "import": import_agent,
            "newcomer": newcomer,
            "ppo": lambda seeds: _steady(ppo, work.PPO, seeds),
            "pqn": lambda seeds: _steady(pqn, work.PQN, seeds),
            "dqn": lambda seeds: _steady(dqn, work.DQN, seeds),
            "sac": lambda seeds: _steady(sac, work.SAC, seeds),
            "td3": lambda seeds: _steady(td3, work.TD3, seeds),
            "redq": lambda seeds: _steady(redq, work.REDQ, seeds),
            "crossq": lambda seeds: _steady(crossq, work.CrossQ, seeds),
        }
    )
