"""A results folder belongs to one process and one run, and a disk that fails costs no more than what didn't fit."""

import contextlib
import errno
import math
import os
import re
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

from ajax.core.errors import CheckpointError, FolderInUse
from ajax.logging import folder as folder_module
from ajax.logging.folder import RunFolder, read_config
from ajax.logging.table import read_csv, to_csv


def test_a_new_folder_holds_config_progress_and_log(tmp_path):
    with RunFolder(tmp_path / "runs" / "x") as folder:
        folder.write_config({"agent": "PPO", "gamma": 0.99})
        folder.append({"step": 1000, "seed": 0, "return": 21.5})
        folder.append({"step": 2000, "seed": 0, "return": math.nan})
        folder.log("started")
        folder.log("ended")
    assert read_config(folder.path) == {"agent": "PPO", "gamma": 0.99}
    assert folder.progress_path.read_text() == "step,seed,return\n1000,0,21.5\n2000,0,nan\n"
    first, second = folder.log_path.read_text().splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC started", first)
    assert second.endswith("UTC ended")
    assert folder.problems == []


def test_columns_may_grow_and_be_left_out(tmp_path):
    with RunFolder(tmp_path) as folder:
        folder.append({"step": 1, "return": 0.1})
        folder.append({"step": 2, "loss": np.float32(0.25)})
        folder.append({"loss": 1e-12, "step": 3})
    assert folder.progress_path.read_text() == "step,return,loss\n1,0.1,\n2,,0.25\n3,,1e-12\n"
    assert read_csv(folder.progress_path) == [
        {"step": 1, "return": 0.1},
        {"step": 2, "loss": 0.25},
        {"step": 3, "loss": 1e-12},
    ]


def test_every_float_is_read_back_exactly(tmp_path):
    rows = [{"x": 0.1 + 0.2, "n": -3, "name": 'a, "b"'}, {"x": 5e-324, "n": 2**60, "name": "c"}]
    (tmp_path / "t.csv").write_text(to_csv(rows, ["x", "n", "name"], header=True))
    assert read_csv(tmp_path / "t.csv") == rows


def test_resuming_reads_the_rows_without_a_torn_line_and_can_drop_the_latest(tmp_path):
    with RunFolder(tmp_path) as folder:
        folder.write_config({})
        for step in (1, 2, 3):
            folder.append({"step": step, "return": step / 2})
    with open(folder.progress_path, "a") as file:
        file.write("4,12")  # cut from 4,123.5
    with RunFolder(tmp_path, resume=True) as folder:
        assert [row["step"] for row in folder.rows] == [1, 2, 3]
        folder.rewrite(row for row in folder.rows if row["step"] <= 2)
        folder.append({"step": 3, "return": 9.0})
    assert folder.progress_path.read_text() == "step,return\n1,0.5\n2,1.0\n3,9.0\n"


def test_appending_after_resuming_without_a_rewrite_repairs_a_torn_line(tmp_path):
    with RunFolder(tmp_path) as folder:
        folder.write_config({})
        folder.append({"step": 1})
    with open(folder.progress_path, "a") as file:
        file.write("2")
    with RunFolder(tmp_path, resume=True) as folder:
        folder.append({"step": 3})
    assert folder.progress_path.read_text() == "step\n1\n3\n"


def test_another_run_is_refused_and_can_be_resumed(tmp_path):
    with RunFolder(tmp_path) as folder:
        folder.write_config({"a": 1})
    with pytest.raises(FolderInUse, match=r"holds another run; go on with it by `ajax resume .*`, or choose another"):
        RunFolder(tmp_path)
    RunFolder(tmp_path, resume=True).close()


def test_foreign_files_are_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(FolderInUse, match=r"holds other files \(thesis\.tex\)"):
        RunFolder(tmp_path)
    assert os.listdir(tmp_path) == ["thesis.tex"]
    with pytest.raises(FolderInUse, match=r"thesis\.tex is a file"):
        RunFolder(tmp_path / "thesis.tex")
    with pytest.raises(CheckpointError, match="there is no run in"):
        RunFolder(tmp_path, resume=True)


def test_what_a_run_killed_at_its_start_left_is_no_run(tmp_path):
    with RunFolder(tmp_path) as folder:
        folder.log("started")
    RunFolder(tmp_path).close()


HOLDER = """
import sys, time
from ajax.logging.folder import RunFolder, read_config
folder = RunFolder(sys.argv[1])
folder.write_config({})
print("ready", flush=True)
time.sleep(60)
"""


def test_a_folder_in_use_names_the_process_and_is_free_once_that_is_killed(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "ready\n"
        for resume in (False, True):
            with pytest.raises(FolderInUse, match=rf"is in use by process {holder.pid} on \S+ since \d{{4}}-.* UTC"):
                RunFolder(tmp_path, resume=resume)
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
    RunFolder(tmp_path, resume=True).close()


def test_a_second_opening_in_the_same_process_is_refused(tmp_path):
    with RunFolder(tmp_path), pytest.raises(FolderInUse, match=f"process {os.getpid()} "):
        RunFolder(tmp_path)


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"can't write the results folder .*: Not a directory; choose another"):
        RunFolder(tmp_path / "file" / "x")


def test_a_full_disk_is_reported_once_and_the_table_is_whole_when_there_is_room_again(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with RunFolder(tmp_path) as folder:
        folder.append({"step": 1})
        with monkeypatch.context() as disk:
            disk.setattr(folder_module, "_add", full)
            disk.setattr(folder_module, "_replace", full)
            with pytest.warns(UserWarning, match=r"can't write .*progress.csv: No space left on device\. The run goes"):
                folder.append({"step": 2})
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                folder.append({"step": 3})
            with pytest.raises(CheckpointError, match=r"can't write .*config.json: No space left"):
                folder.write_config({})
        assert folder.progress_path.read_text() == "step\n1\n"
        folder.append({"step": 4})
    assert folder.progress_path.read_text() == "step\n1\n2\n3\n4\n"
    assert len(folder.problems) == 1


def test_a_really_full_disk_costs_nothing_once_there_is_room(tiny_disk):
    filler = tiny_disk / "filler"
    with RunFolder(tiny_disk / "run") as folder:
        folder.append({"step": 0})
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        with pytest.warns(UserWarning, match="No space left on device"):
            for step in range(1, 2000):
                folder.append({"step": step})
        filler.unlink()
        folder.append({"step": 2000})
    assert [row["step"] for row in read_csv(folder.progress_path)] == list(range(2001))


def test_a_really_read_only_disk_is_one_sentence(tiny_disk):
    subprocess.run(["mount", "-o", "remount,ro", tiny_disk], check=True)
    with pytest.raises(CheckpointError, match=r"can't write the results folder .*: Read-only file system; choose"):
        RunFolder(tiny_disk / "run")
