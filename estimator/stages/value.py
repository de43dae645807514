"""How PPO's value model runs."""

from estimator.step.regime import Regime


def value_regime(regime: Regime) -> Regime:
    """The value model is trained whole, whatever trains of the policy (trl.experimental.ppo)."""
    return regime._replace(adapter=None, quantised=None, kbit=False, trainable="all", stage="", reference="none")
