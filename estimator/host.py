"""Memory of the host: optimizer states that are paged, and activations that wait there for the backward."""

from estimator.schema import Assumption, Host, Run
from estimator.setting import Peak, Setting, peak_of
from estimator.step.tape import FULL

GIB = 1 << 30


def host_of(run: Run, setting: Setting, peak: Peak) -> Host:
    """Bytes on each machine: every card's process keeps its own."""
    ram, nvme = peak.base.host
    each = ram + peak.base.optimizer.paged + _activations(setting, peak)
    processes = -(-(setting.copies if setting.regime.training else 1) // (run.nodes or 1))
    return Host(ram=each * processes, nvme=nvme * processes)


def host_notes(run: Run, host: Host | None) -> list[Assumption]:
    """That the computer's memory, where it is given, is too small for what waits there."""
    if run.host_ram_gib is None or host is None or host.ram <= run.host_ram_gib * GIB:
        return []
    needed, there = f"{host.ram / GIB:.1f} GiB", f"{run.host_ram_gib:g} GiB"
    return [
        Assumption(
            field="host_ram_gib",
            value=run.host_ram_gib,
            why=f"does not run here: {needed} are to wait in the computer's memory, which has {there}; the verdict is "
            "the card's alone",
            why_zh=f"此配置无法运行：需要 {needed} 主机内存，而本机只有 {there}；上面的结论仅针对显卡",
        )
    ]


def _activations(setting: Setting, peak: Peak) -> int:
    regime = setting.regime
    if regime.checkpointing == "offload" or (regime.offload_saved and regime.checkpointing == "full"):
        return _inputs(setting)
    if not regime.offload_saved:
        return 0
    kept = peak_of(setting._replace(regime=regime._replace(offload_saved=False)))
    return max(kept.phases["forward"] - peak.phases["forward"], 0)


def _inputs(setting: Setting) -> int:
    """The layers' inputs."""
    itemsize = FULL if setting.regime.kbit else setting.regime.itemsize
    return setting.arch.layers * setting.at.batch * setting.at.length * setting.arch.hidden * itemsize
