"""Processes that draw or answer lines end with a parent that was killed."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = 30.0
POOLS = {
    "spawn": "from bot.discord.desk import _drawers; from bot.discord.drawing import NOTHING, drawn\n"
    "if __name__ == '__main__': pool = _drawers(2); pool.submit(drawn, NOTHING, 1).result()",
    "fork": "from bot.cli.workers import side_by_side\n"
    "if __name__ == '__main__': found = side_by_side([[b'x'] * 100], len, 2); [next(found) for _ in range(50)]",
}
WAIT = "\nif __name__ == '__main__': import sys; print('at work', flush=True); sys.stdin.read()\n"


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
@pytest.mark.parametrize("kind", POOLS)
def test_no_process_stays_behind_a_killed_parent(kind: str, tmp_path: Path) -> None:
    """A pipe that every process holds open is closed when the last of them is gone."""
    script = tmp_path / "parent.py"
    script.write_text(POOLS[kind] + WAIT, "utf-8")
    held, write = os.pipe()
    hold = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    parent = subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=write, env=hold, text=True
    )
    os.close(write)
    assert parent.stdin and parent.stdout
    try:
        assert parent.stdout.readline() == "at work\n"
        assert not select.select([held], [], [], 0)[0], "somebody holds it"
        parent.send_signal(signal.SIGKILL)
        parent.wait(SECONDS)
        while select.select([held], [], [], SECONDS)[0]:
            if not os.read(held, 10_000):  # else what Python's own tracker of resources says about the killed one
                return
        pytest.fail("somebody holds it still")
    finally:
        parent.kill()
        parent.wait()
        parent.stdin.close()
        parent.stdout.close()
        os.close(held)
