"""Asks every peer for every measured row: ``python -m docs.peers`` (needs a package registry).

Each peer is installed into a throw-away environment by pip and run there (``docs/peers/ask``); the figures, versions
and the date go to ``docs/peers/results.json``, from which ``python -m docs.accuracy`` makes its section.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from docs.peers.page import MEASURED, PEERS, RESULTS, Peer
from estimator.architecture import from_config
from estimator.catalogue import find_model
from estimator.catalogue.rows import model_row
from estimator.inventory import inventory
from tests.estimator.cases import cases

ROOT = Path(__file__).parents[2]


def rows() -> Iterator[dict[str, Any]]:
    """The measured rows as the peers are handed them: run, config.json, parameters, tensors, size of the card."""
    for name in MEASURED:
        for case in cases(name):
            run = case["run"]
            config = model_row(find_model(run["model"]).id).config
            arch = from_config(config)
            parts = inventory(arch)
            weights = [*parts.stem, *parts.top, *(one for index in parts.layers for one in parts.kinds[index].weights)]
            sizes = {
                "hidden_size": arch.hidden, "num_hidden_layers": arch.layers, "num_attention_heads": arch.heads,
                "num_key_value_heads": arch.kv_heads, "head_dim": arch.head_dim, "vocab_size": arch.vocab,
                "intermediate_size": arch.intermediate, "tie_word_embeddings": arch.tied,
            }  # fmt: skip
            yield {
                "id": case["id"], "run": run, "config": config | sizes, "metric": case["measured"]["metric"],
                "parameters": parts.numel, "card_gib": _gib(run["gpu"]),
                "tensors": [(f"{number}.{one.name}", one.shape) for number, one in enumerate(weights)],
            }  # fmt: skip


def _gib(gpu: str) -> float:
    """What the card is sold with; the word behind the name where there are several."""
    words = [word for word in gpu.split() if word.endswith("GB")]
    return float(words[-1].removesuffix("GB")) if words else {"RTX 3090": 24.0, "RTX 4090": 24.0}.get(gpu, 48.0)


def asked(peer: Peer, lines: list[str], folder: Path) -> dict[str, Any]:
    """The peer's version and its answers, or why it could not be installed."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", peer.package],  # noqa: S603 - a pinned list
                          capture_output=True, text=True, check=False)  # fmt: skip
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1][:200]}
    shown = _output([python, "-m", "pip", "show", peer.package])
    version = next(line.split()[1] for line in shown.splitlines() if line.startswith("Version:"))
    found = [json.loads(line) for line in _output([python, "-m", f"docs.peers.ask.{peer.module}"], lines).splitlines()]
    return {
        "version": version,
        "bytes": {one["id"]: one["bytes"] for one in found if "bytes" in one},
        "why": {one["id"]: one["why"] for one in found if "why" in one},
    }


def _output(command: list[Any], lines: list[str] | None = None) -> str:
    around = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    return subprocess.run(command, input="".join(lines or ()), capture_output=True, text=True, check=True,  # noqa: S603
                          env=around, cwd=ROOT).stdout  # fmt: skip


def main() -> None:
    """Ask them all, or those named, and write the data file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these peers")
    names = parser.parse_args().names
    lines = [json.dumps(row) + "\n" for row in rows()]
    results = json.loads(RESULTS.read_text("utf-8")) if names and RESULTS.exists() else {"peers": {}}
    for peer in PEERS:
        if not names or peer.package in names:
            with tempfile.TemporaryDirectory() as folder:
                results["peers"][peer.package] = found = asked(peer, lines, Path(folder))
            print(peer.package, found.get("failed") or f"{found['version']}: {len(found['bytes'])} rows", flush=True)
    results["date"] = datetime.now(UTC).date().isoformat()
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
