"""The cheapest changes that make a run fit the very card that it names."""

from estimator.catalogue import find_model
from estimator.downgrades.lowered import planned
from estimator.errors import EstimatorError
from estimator.estimate import around_of, card_of, outcome_of, refilled
from estimator.schema import Plan, Run


def plan_on_card(asked: Run) -> Plan | None:
    """The plan; None where the run fits as it is, nothing makes it fit, or it cannot be estimated."""
    try:
        model, gpu = find_model(asked.model), card_of(asked)
        filled = refilled(asked, model)
    except EstimatorError:
        return None
    outcome = outcome_of(filled, model)
    if gpu is None or outcome is None or outcome.fits:
        return None
    return planned(asked, filled, outcome, around_of(model, gpu))
