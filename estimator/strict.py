"""Parts that the shapes of input share: models that name what they do not know, and numbers with their limits."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

MAX_TOKENS = 100_000_000
"""No context window, batch or sequence beyond this is a real question."""


class Strict(BaseModel):
    """A model that names every field it does not know."""

    model_config = ConfigDict(extra="forbid", defer_build=True, protected_namespaces=())


def no_switch(kind: str) -> BeforeValidator:
    """True and false are no numbers, though Python counts with them."""

    def checked(value: Any) -> Any:
        if isinstance(value, bool):
            raise PydanticCustomError(f"{kind}_type", "not a number")
        return value

    return BeforeValidator(checked)


Count = Annotated[int, Field(ge=1, le=1_000_000), no_switch("int")]
Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS), no_switch("int")]
Positive = Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False), no_switch("float")]
Amount = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False), no_switch("float")]
Share = Annotated[float, Field(gt=0, le=1), no_switch("float")]
