"""Parts that the shapes of input share: models that name what they do not know, and numbers with their limits."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

MAX_TOKENS = 100_000_000
"""No context window, batch or sequence beyond this is a real question."""


class Strict(BaseModel):
    """A model that names every field it does not know."""

    model_config = ConfigDict(extra="forbid", defer_build=True, protected_namespaces=())


class NoSwitch:
    """True and false are no numbers, though Python counts with them.

    Gives its schema itself: pydantic would look up the signature of a BeforeValidator's function for every field.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """The field's own schema, with the check before it."""
        return core_schema.no_info_before_validator_function(self._checked, handler(source))

    def _checked(self, value: Any) -> Any:
        if isinstance(value, bool):
            raise PydanticCustomError(f"{self.kind}_type", "not a number")
        return value


Count = Annotated[int, Field(ge=1, le=1_000_000), NoSwitch("int")]
Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS), NoSwitch("int")]
Positive = Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False), NoSwitch("float")]
Amount = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False), NoSwitch("float")]
Share = Annotated[float, Field(gt=0, le=1), NoSwitch("float")]
