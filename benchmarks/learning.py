"""What every agent learns on standard tasks, beside other libraries' agents and published returns.

Each row trains one agent with 8 seeds in one compiled program and then runs 100 episodes of every seed's greedy policy.
Beside it, where another library has the agent, that agent is trained with the same numbers, in an environment of its
own (.venv-peers/). Results are files of JSON under benchmarks/results/learning/: a row that has its file is not run
again, unless its definition in benchmarks/learning_rows.py has changed. At the end the table and the picture of
docs/learning.md are written anew from all files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.environments import LIBRARIES, ROOT, install, versions

FOLDER = ROOT / "benchmarks" / "results" / "learning"
RUNS = ROOT / "runs" / "learning"
"""Rows under way: checkpoints, and what they have cost so far."""

EVALUATIONS, EPISODES, FINAL_EPISODES = 20, 16, 100
PEER_EVALUATIONS, PEER_EPISODES, PEER_FINAL_EPISODES = 10, 5, 20
"""Other libraries step one environment at a time, so that evaluating them takes longer."""

EXAMPLES = """examples:
  make learning                                        every row that has no result yet
  python -m benchmarks.learning --list                 rows, and what is done
  python -m benchmarks.learning --only SAC,PPO         rows whose names contain one of these
  python -m benchmarks.learning --only "TD3 " --who peers --again
  python -m benchmarks.learning --report               run nothing, write table and picture
"""


def main() -> None:
    """Parse the command line, run what is not done, report."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.learning",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", help="parts of the rows' names, such as SAC,PPO")
    parser.add_argument("--who", choices=("all", "ajax", "peers"), default="all", help="whose agents are trained")
    parser.add_argument("--again", action="store_true", help="run rows that are done, too")
    parser.add_argument("--list", action="store_true", help="list the rows, and run nothing")
    parser.add_argument("--report", action="store_true", help="write table and picture, and run nothing")
    args = parser.parse_args()

    from ajax.agents import MODULES
    from benchmarks.learning_rows import ROWS

    wanted = [part.lower() for part in args.only.split(",") if part.strip()]
    rows = [row for row in ROWS if not wanted or any(part in row.name.lower() for part in wanted)]
    if not rows:
        parser.error(f"--only {args.only}: no row has that in its name. Rows: {', '.join(row.name for row in ROWS)}.")
    jobs = [(row, False) for row in rows if args.who != "peers"]
    jobs += [(row, True) for row in rows if row.peer and args.who != "ajax"]
    todo = [(row, peer) for row, peer in jobs if args.again or read(row, peer) is None]
    if args.list:
        for row, peer in jobs:
            who = row.peer.library if peer else "Ajax"
            print(f"{row.name:26s} {who:6s} {row.steps:>9,} steps  {'to do' if (row, peer) in todo else 'done'}")
        print("Agents without a row:", ", ".join(sorted(set(MODULES) - {type(row.agent).__name__ for row in ROWS})))
        return
    if not args.report:
        for i, (row, peer) in enumerate(todo, 1):
            print(f"[{i}/{len(todo)}] {row.name}, {row.peer.library if peer else 'Ajax'} ...", flush=True)
            if args.again:
                path_of(row, peer, True).unlink(missing_ok=True)
            result = measure_peer(row) if peer else measure(row)
            keep(row, peer, result)
            print(f"  {summary(result)}", flush=True)

    from benchmarks import learning_report

    learning_report.write(results())


def results() -> list[tuple[Any, dict[str, Any] | None, dict[str, Any] | None]]:
    """Every row, our result and the other library's; None where there is none."""
    from benchmarks.learning_rows import ROWS

    return [(row, read(row, False), read(row, True) if row.peer else None) for row in ROWS]


def path_of(row: Any, peer: bool, partial: bool = False) -> Path:
    """The file of a row's result, or of what there is of it while it is under way."""
    name = re.sub(r"[^a-z0-9.=]+", "-", row.name.lower())
    return (RUNS if partial else FOLDER) / f"{name}{f'.{row.peer.library.lower()}' if peer else ''}.json"


def definition(row: Any, peer: bool) -> dict[str, Any]:
    """What is run, as JSON values: a result of another definition is out of date."""
    from ajax.core.serialize import to_dict

    if peer:
        points = [row.steps * (i + 1) // PEER_EVALUATIONS for i in range(PEER_EVALUATIONS)]
        return {
            **{"package": row.peer.package, "agent": row.peer.agent, "settings": row.peer.settings},
            **{"env": row.env.rpartition(":")[2], "n_envs": row.peer.n_envs, "seeds": row.peer.seeds},
            **{"steps": row.steps, "at": points, "episodes": PEER_EPISODES, "final_episodes": PEER_FINAL_EPISODES},
        }
    return json.loads(
        json.dumps(
            {
                **{"agent": to_dict(row.agent), "env": row.env, "steps": row.steps, "seeds": row.seeds},
                **{"options": row.options, "teacher": to_dict(row.teacher)},
                **({"teacher_steps": row.teacher_steps} if row.teacher is not None else {}),
            }
        )
    )


def read(row: Any, peer: bool, partial: bool = False) -> dict[str, Any] | None:
    """A row's result, or what there is of it while it is under way; None where none has its present definition."""
    path = path_of(row, peer, partial)
    result = json.loads(path.read_text()) if path.exists() else None
    return result if result and same(definition(row, peer), result["definition"]) else None


def same(present: dict[str, Any], recorded: dict[str, Any]) -> bool:
    """Whether a definition is still the recorded one: a field that agents have gained since does not count."""
    agents = "agent", "teacher"
    rest = [{name: value for name, value in side.items() if name not in agents} for side in (present, recorded)]
    return rest[0] == rest[1] and all(covers(present.get(name), recorded.get(name)) for name in agents)


def covers(present: Any, recorded: Any) -> bool:
    """Whether every recorded value is the present one."""
    if isinstance(present, dict) and isinstance(recorded, dict):
        return all(name in present and covers(present[name], value) for name, value in recorded.items())
    return present == recorded


def measure(row: Any) -> dict[str, Any]:
    """Train our agent: all seeds in one program. Interrupted, it goes on from its checkpoint the next time.

    Raises:
        SystemExit: training was interrupted.
    """
    import ajax

    agent, data, about = row.agent, None, {}
    if row.teacher is not None:
        teacher = taught(row)
        about["teacher"] = round(float(teacher.returns[0, -1]), 2)
        if isinstance(agent, ajax.DAgger):
            agent = replace(agent, expert=teacher.expert())
        else:
            data = teacher.dataset()
            about["data"] = round(mean_return(data), 2)
    begun, folder = read(row, False, partial=True), RUNS / path_of(row, False).stem
    cpu, wall = time.process_time(), time.perf_counter()
    if begun and (folder / "checkpoints").is_dir():
        result = ajax.resume(folder, agent=agent, dataset=data)
    else:
        begun = {"seconds": 0.0, "wall": 0.0, "final": []}
        shutil.rmtree(folder, ignore_errors=True)
        keep(row, False, begun, partial=True)
        result = agent.train(
            row.env,
            row.steps,
            seeds=row.seeds,
            evaluations=EVALUATIONS,
            episodes=EPISODES,
            dataset=data,
            out=folder,
            **row.options,
        )
    final = [] if result.interrupted else result.evaluate(FINAL_EPISODES).returns.mean(1)
    measured = {
        "seconds": round(begun["seconds"] + time.process_time() - cpu, 1),
        "wall": round(begun["wall"] + time.perf_counter() - wall, 1),
        "final": [round(float(x), 2) for x in final],
    }
    if result.interrupted:
        keep(row, False, measured, partial=True)
        raise SystemExit(f"{row.name}: interrupted at step {result.steps[-1]:,}; the same command goes on from there.")
    shutil.rmtree(folder)
    returns = [[round(float(x), 2) for x in lane] for lane in result.returns]
    found = versions(Path(sys.executable))
    return measured | {"steps": result.steps.tolist(), "returns": returns, "versions": found} | about


def taught(row: Any) -> Any:
    """The result of a row's teacher, trained once for all rows that learn from it."""
    import ajax

    about = definition(row, False)
    name = json.dumps([about["teacher"], about["teacher_steps"], row.env])
    folder = RUNS / f"teacher-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    if (folder / "checkpoints").is_dir():
        result = ajax.resume(folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)
        result = row.teacher.train(row.env, row.teacher_steps, evaluations=1, episodes=FINAL_EPISODES, out=folder)
    if result.interrupted:
        raise SystemExit(f"{row.name}: interrupted while its teacher learned; the same command goes on from there.")
    return result


def written(row: Any) -> Path:
    """A file of the dataset that a row learns from."""
    import numpy as np

    data, path = taught(row).dataset(), RUNS / "dataset.npz"
    np.savez(path, **{f.name: getattr(data, f.name) for f in fields(data)})
    return path


def mean_return(data: Any) -> float:
    """Mean return of a dataset's whole episodes."""
    import numpy as np

    ends = np.flatnonzero(data.terminated | data.truncated)
    return float(np.add.reduceat(data.reward[: ends[-1] + 1], np.r_[0, ends[:-1] + 1]).mean())


def measure_peer(row: Any) -> dict[str, Any]:
    """Train the other library's agent in its environment, a process a seed; each is kept as soon as it is done."""
    library = next(library for library in LIBRARIES if library.name == row.peer.library)
    python, job, script = install(library), definition(row, True), "benchmarks.peers.learning"
    if row.teacher is not None:
        job["data"], script = str(written(row)), library.script
    result = read(row, True, partial=True) or {
        "seconds": 0.0,
        "wall": 0.0,
        "steps": job["at"],
        "returns": [],
        "final": [],
    }
    for seed in range(len(result["final"]), row.peer.seeds):
        began = time.perf_counter()
        done = subprocess.run(
            [python, "-m", script],
            input=json.dumps(job | {"seed": seed}),
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | {"JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
            check=True,
        )
        new = json.loads(done.stdout.strip().splitlines()[-1])
        result["wall"] = round(result["wall"] + time.perf_counter() - began, 1)
        result["seconds"] = round(result["seconds"] + new["seconds"], 1)
        result["returns"].append(new["returns"]), result["final"].append(new["final"])
        result["versions"] = new["versions"]
        keep(row, True, result, partial=True)
        print(f"  seed {seed}: {new['final']:.1f} after {new['seconds']:.0f} processor s", flush=True)
    return result


def keep(row: Any, peer: bool, result: dict[str, Any], partial: bool = False) -> None:
    """Write a row's result, or what there is of it while it is under way."""
    about = {"definition": definition(row, peer), "machine": machine.describe()}
    path = path_of(row, peer, partial)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(about | result) + "\n")
    if not partial:
        path_of(row, peer, True).unlink(missing_ok=True)


def summary(result: dict[str, Any]) -> str:
    """The final return of a result, and what it cost, as a line."""
    import numpy as np

    from ajax.logging.statistics import bootstrap_interval

    n = len(result["final"])
    return f"{bootstrap_interval(np.array(result['final']))} over {n} seeds, {result['seconds']:.0f} processor s"


if __name__ == "__main__":
    main()
