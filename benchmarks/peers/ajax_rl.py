"""ajax-rl (https://github.com/YannBerthelot/Ajax). Its package, too, is called `ajax`; needs Python 3.12."""

from __future__ import annotations

from typing import Any

from benchmarks import child, work


def ppo():
    """PPO on the common work."""
    from ajax import PPO

    w = work.PPO
    architecture = _layers(w.widths, "tanh")
    return PPO(
        w.env,
        n_envs=w.n_envs,
        n_steps=w.n_steps,
        n_epochs=w.n_epochs,
        num_minibatches=w.n_minibatches,
        batch_size=w.batch_size,
        actor_learning_rate=w.learning_rate,
        critic_learning_rate=w.learning_rate,
        max_grad_norm=w.max_grad_norm,
        ent_coef=w.entropy_coef,
        actor_architecture=architecture,
        critic_architecture=architecture,
    )


def dqn():
    """DQN on the common work."""
    from ajax import DQN

    w = work.DQN
    return DQN(
        **_off_policy(w),
        learning_rate=w.learning_rate,
        architecture=_layers(w.widths, "relu"),
        target_update_interval=w.refresh,
    )


def sac():
    """SAC on the common work."""
    from ajax import SAC

    w = work.SAC
    return SAC(
        **_off_policy(w), **_actor_critic(w), policy_update_start=0, alpha_update_start=0, expert_buffer_n_steps=0
    )


def td3():
    """TD3 on the common work."""
    from ajax import TD3

    return TD3(**_off_policy(work.TD3), **_actor_critic(work.TD3))


def redq():
    """REDQ on the common work."""
    from ajax import REDQ

    w = work.REDQ
    return REDQ(**_off_policy(w), **_actor_critic(w), num_critic_updates=w.per_step)


def _layers(widths: tuple[int, ...], activation: str) -> tuple[str, ...]:
    return tuple(part for width in widths for part in (str(width), activation))


def _off_policy(w: work.OffPolicy) -> dict[str, Any]:
    return {
        "env_id": w.env,
        "n_envs": 1,
        "batch_size": w.batch_size,
        "buffer_size": w.capacity,
        "learning_starts": w.warmup,
    }


def _actor_critic(w: work.OffPolicy) -> dict[str, Any]:
    return {
        "actor_learning_rate": w.learning_rate,
        "critic_learning_rate": w.learning_rate,
        "actor_architecture": _layers(w.widths, "relu"),
        "critic_architecture": _layers(w.widths, "relu"),
    }


def _steady(make, w: work.OnPolicy | work.OffPolicy, seeds: int) -> dict[str, Any]:
    import jax
    import jax.numpy as jnp

    agent = make()
    # what `agent.train` builds and compiles anew at each call
    train = agent.get_make_train()(
        env_args=agent.env_args,
        actor_optimizer_args=agent.actor_optimizer_args,
        critic_optimizer_args=agent.critic_optimizer_args,
        network_args=agent.network_args,
        agent_config=agent.agent_config,
        total_timesteps=w.steps(seeds),
        num_episode_test=1,
        run_ids=[],
        logging_config=None,
    )
    keys = jax.vmap(jax.random.PRNGKey)(jnp.arange(seeds))
    amount = seeds * w.steps(seeds) if isinstance(w, work.OnPolicy) else w.done(seeds)
    return child.jax_program(jax.vmap(train), (keys, jnp.arange(seeds)), amount)


def newcomer(seeds: int) -> dict[str, Any]:
    """Train a first agent and evaluate it."""
    from ajax.logging.wandb_logging import LoggingConfig

    logging = LoggingConfig(config={}, log_frequency=work.NEWCOMER_STEPS, use_wandb=False)
    _, out = ppo().train(
        seed=0,
        n_timesteps=work.NEWCOMER_STEPS,
        num_episode_test=work.EVALUATION_EPISODES,
        logging_config=logging,
    )
    return {"return": float(out["Eval/episodic mean reward"][0, -1])}


def import_agent(seeds: int) -> dict[str, Any]:
    """Import an agent."""

    def load() -> None:
        from ajax import PPO  # noqa: F401

    return {"seconds": child.seconds(load)}


if __name__ == "__main__":
    child.main(
        {
            "import": import_agent,
            "newcomer": newcomer,
            "ppo": lambda seeds: _steady(ppo, work.PPO, seeds),
            "dqn": lambda seeds: _steady(dqn, work.DQN, seeds),
            "sac": lambda seeds: _steady(sac, work.SAC, seeds),
            "td3": lambda seeds: _steady(td3, work.TD3, seeds),
            "redq": lambda seeds: _steady(redq, work.REDQ, seeds),
        }
    )
