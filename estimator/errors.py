"""What the estimator says when it cannot answer."""


class EstimatorError(ValueError):
    """A wrong or unanswerable input: one sentence that says what is wrong and how to mend it, per language."""

    def __init__(self, message: str, message_zh: str = "", field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.message_zh = message_zh or message
        self.field = field
