"""How many rows one item of the micro-batch brings into the forward, and how many tokens of each are scored."""

from estimator.schema import Run

PAIRS = ("dpo", "reward", "orpo", "simpo")
"""Stages whose item is a pair: the chosen and the rejected row go through the model together (trl 1.16)."""
ONLINE = ("grpo", "ppo")
OWN_STEP = (*PAIRS, "kto", *ONLINE, "embed")
"""Stages whose step is described by its own forwards and loss; the others run the model's own loss once."""


def rows_per_item(run: Run) -> int:
    """Rows of the policy's forward for one item: two of a pair, the completions of a prompt, else one."""
    if run.task != "train":
        return 1
    stated = (run.details or {}).get("rows_in_forward")
    items = run.micro_batch or 1
    if isinstance(stated, int) and stated >= items and stated % items == 0:
        return stated // items
    if run.stage in (*PAIRS, "embed"):
        return 2
    if run.stage == "grpo" and run.rl is not None:
        return run.rl.num_generations or 1
    return 1


def scored_tokens(run: Run) -> int:
    """Tokens of a row that are scored; 0: all but the first."""
    if run.task != "train" or run.stage not in OWN_STEP:
        return 0
    stated = (run.details or {}).get("trained_tokens_per_row")
    if isinstance(stated, int) and stated > 0:
        return stated
    if run.stage in ONLINE and run.rl is not None:
        return run.rl.max_completion_len or 0
    return 0


def own_step(run: Run) -> str:
    """The stage as the step knows it, "" where one forward with the model's own loss is the whole step."""
    return str(run.stage) if run.task == "train" and run.stage in OWN_STEP else ""


def drops(run: Run) -> bool:
    """Whether dropout is on: trl switches it off for policies that are compared with a reference, and for rewards.

    ``disable_dropout`` is True in trl 1.16's DPO, KTO, reward, ORPO and CPO configs and False in GRPO's.
    """
    return run.framework != "trl" or run.stage not in (*PAIRS, "kto", "ppo")


def reference_of(run: Run) -> str:
    """Who gives reference log-probabilities while the step runs: model, adapter-off or none."""
    given = run.preference
    if run.stage not in ("dpo", "kto", "grpo", "ppo") or given is None or given.precomputed_logps:
        return "none"
    return given.reference or "none"
