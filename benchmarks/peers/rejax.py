"""rejax (https://github.com/keraJLi/rejax). Needs gymnax below 1.0."""

from __future__ import annotations

from typing import Any

from benchmarks import child, work


def ppo(steps: int, **options: Any):
    """PPO on the common work."""
    from rejax import PPO

    w = work.PPO
    return PPO.create(
        env=w.env,
        num_envs=w.n_envs,
        num_steps=w.n_steps,
        num_epochs=w.n_epochs,
        num_minibatches=w.n_minibatches,
        learning_rate=w.learning_rate,
        max_grad_norm=w.max_grad_norm,
        ent_coef=w.entropy_coef,
        agent_kwargs={"activation": "tanh", "hidden_layer_sizes": w.widths},
        **_length(steps),
        **options,
    )


def pqn(steps: int):
    """PQN on the common work; its optimizer is Adam, and it clips each element of the gradient."""
    from flax import linen as nn
    from rejax import PQN
    from rejax.networks import DiscreteQNetwork, EpsilonGreedyPolicy

    w = work.PQN
    agent = PQN.create(
        env=w.env,
        num_envs=w.n_envs,
        num_steps=w.n_steps,
        num_epochs=w.n_epochs,
        num_minibatches=w.n_minibatches,
        learning_rate=w.learning_rate,
        max_grad_norm=w.max_grad_norm,
        **_length(steps),
    )
    # widths in `agent_kwargs` clash with rejax's own argument, so the network is replaced
    net = EpsilonGreedyPolicy(DiscreteQNetwork)(
        hidden_layer_sizes=w.widths, action_dim=2, activation=lambda x: nn.relu(nn.LayerNorm()(x))
    )
    return agent.replace(agent=net)


def dqn(steps: int):
    """DQN on the common work."""
    from flax import linen as nn
    from rejax import DQN
    from rejax.networks import DiscreteQNetwork, EpsilonGreedyPolicy

    w = work.DQN
    # widths in `agent_kwargs` clash with rejax's own argument, so the network is replaced
    net = EpsilonGreedyPolicy(DiscreteQNetwork)(hidden_layer_sizes=w.widths, action_dim=2, activation=nn.relu)
    agent = DQN.create(**_off_policy(w, steps), ddqn=False, target_update_freq=w.refresh, polyak=0.0)
    return agent.replace(agent=net)


def sac(steps: int):
    """SAC on the common work."""
    from rejax import SAC

    w = work.SAC
    return SAC.create(**_off_policy(w, steps), hidden_layer_sizes=w.widths, target_update_freq=1, polyak=0.995)


def td3(steps: int):
    """TD3 on the common work."""
    from flax import linen as nn
    from rejax import TD3
    from rejax.networks import DeterministicPolicy, QNetwork

    w = work.TD3
    agent = TD3.create(**_off_policy(w, steps), target_update_freq=1, polyak=0.995)
    actor = agent.actor.clone(hidden_layer_sizes=w.widths, activation=nn.relu)
    assert isinstance(actor, DeterministicPolicy)
    return agent.replace(actor=actor, critic=QNetwork(hidden_layer_sizes=w.widths, activation=nn.relu))


def _length(steps: int) -> dict[str, Any]:
    return {"total_timesteps": steps, "eval_freq": steps, "skip_initial_evaluation": True}


def _off_policy(w: work.OffPolicy, steps: int) -> dict[str, Any]:
    return {
        "env": w.env,
        "num_envs": 1,
        "num_epochs": 1,
        "batch_size": w.batch_size,
        "buffer_size": w.capacity,
        "fill_buffer": w.warmup,
        "learning_rate": w.learning_rate,
        **_length(steps),
    }


def _steady(make, w: work.OnPolicy | work.OffPolicy, seeds: int) -> dict[str, Any]:
    import jax

    agent = make(w.steps(seeds)).replace(eval_callback=lambda algo, state, key: ())
    keys = jax.random.split(jax.random.PRNGKey(0), seeds)
    amount = seeds * w.steps(seeds) if isinstance(w, work.OnPolicy) else w.done(seeds)
    if seeds == 1:
        return child.jax_program(agent.train, (keys[0],), amount)
    return child.jax_program(jax.vmap(agent.train), (keys,), amount)


def newcomer(seeds: int) -> dict[str, Any]:
    """Train a first agent and evaluate it."""
    import jax
    from rejax.evaluate import evaluate

    agent = ppo(work.NEWCOMER_STEPS)

    def final(algo, state, key):
        limit = algo.env_params.max_steps_in_episode
        return evaluate(algo.make_act(state), key, algo.env, algo.env_params, work.EVALUATION_EPISODES, limit)

    agent = agent.replace(eval_callback=final)
    _, (_, returns) = jax.jit(agent.train)(jax.random.PRNGKey(0))
    return {"return": float(returns[-1].mean())}


def import_agent(seeds: int) -> dict[str, Any]:
    """Import an agent."""

    def load() -> None:
        from rejax import PPO  # noqa: F401

    return {"seconds": child.seconds(load)}


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
        }
    )
