"""The backend's name in vLLM's configuration, whose names of backends are a closed list; imports a part of vLLM.

``StructuredOutputsConfig`` is a pydantic dataclass: its field for the backend gets a wider type, and it is built again.
Two of its options it allows by backend; the same two are served here, so its check is asked as if for one it knows.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

__all__ = ["NAME", "widen_backends"]

NAME = "guided"
"""The backend's name."""

_KNOWS_BOTH = "guidance"
"""A backend of vLLM for which it allows ``disable_any_whitespace`` and ``disable_additional_properties``."""


def widen_backends() -> None:
    """Let ``structured_outputs_config={"backend": "guided"}`` be said; does nothing the second time."""
    from pydantic.dataclasses import rebuild_dataclass
    from vllm.config import structured_outputs

    config: Any = structured_outputs.StructuredOutputsConfig
    fields = config.__dataclass_fields__
    names = get_args(fields["backend"].type)
    if NAME in names:
        return
    wider: Any = Literal.__getitem__((*names, NAME))
    structured_outputs.StructuredOutputsBackend = wider
    config.__annotations__["backend"] = wider
    fields["backend"].type = wider
    config.__pydantic_fields__["backend"].annotation = wider
    check = config.__pydantic_decorators__.model_validators["_validate_structured_output_config"]
    check.func = _checked(check.func)
    rebuild_dataclass(config, force=True)


def _checked(check: Any) -> Any:
    def checked(self: Any) -> Any:
        if self.backend != NAME:
            return check(self)
        # Set around pydantic: assignment would be validated, and this is in the middle of that.
        object.__setattr__(self, "backend", _KNOWS_BOTH)
        try:
            check(self)
        finally:
            object.__setattr__(self, "backend", NAME)
        return self

    return checked
