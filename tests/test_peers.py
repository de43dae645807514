"""The page's comparison is of the figures in ``docs/peers/results.json``."""

import json

from docs.peers.page import HEAD, MEASURED, PEERS, RESULTS, section
from tests.estimator.cases import cases


def test_the_page_shows_the_stored_figures() -> None:
    shown = (RESULTS.parents[1] / "accuracy.md").read_text("utf-8")
    assert HEAD.split("\n")[1] in shown
    for line in section().splitlines():
        name = line.split("|")[1].strip() if line.startswith("| ") else ""
        if name and not name.startswith(("…", "estimator", "---")):
            assert name in shown


def test_every_peer_was_asked_for_every_row() -> None:
    results = json.loads(RESULTS.read_text("utf-8"))
    rows = {case["id"] for name in MEASURED for case in cases(name)}
    for peer in PEERS:
        found = results["peers"][peer.package]
        if "failed" not in found:
            assert found["version"]
            assert found["bytes"].keys() | found["why"].keys() == rows
            assert not found["bytes"].keys() & found["why"].keys()
