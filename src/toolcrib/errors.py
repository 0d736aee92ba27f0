"""Every error that Toolcrib raises on purpose.

    ToolcribError
    ├── ConfigError               config_invalid          a setting or an argument of ours is wrong
    ├── DefinitionError           definition_invalid      one tool's definition cannot be used
    ├── AssemblyError             core_tool_lost          an assembly would have dropped a core tool
    ├── RequiredToolsMissing      required_tools_missing  a turn cannot have what it was promised
    ├── ModelUnavailable          model_unavailable       the embedding model cannot be read
    ├── SourceError               source_failed           a source cannot be reached or used
    │   ├── SourceUnavailable     source_unavailable
    │   └── SourceProtocolError   source_protocol
    ├── ModelError                model_failed            the model's endpoint failed or cannot be reached
    │   └── ModelRefused          model_refused           the endpoint does not take such a request
    └── CallError                                         a call that the model made and may repair
        ├── InvalidCall           invalid_call            the bridge or the call itself was malformed
        ├── CallDirectly          call_directly           a visible tool was sent through the bridge
        ├── ToolNotAvailable      tool_not_available      unknown, out of scope or held back: never told apart
        ├── InvalidArguments      invalid_arguments       carries the schema, so that one turn repairs it
        ├── GuardrailRefused      guardrail_refused
        ├── HookRejected          hook_rejected
        ├── ApprovalRequired      approval_required       nobody could be asked
        ├── ApprovalDenied        approval_denied
        ├── CheckpointFailed      checkpoint_failed
        ├── DeadlineExceeded      deadline_exceeded
        ├── TooBusy               too_busy
        ├── ToolFailed            tool_failed             the tool itself failed
        │   └── SourceRefused     source_refused          an MCP server answered with a protocol error
        └── SearchRefused         search_refused          searching again cannot help (X7)

`str(error)` is for the operator. `error.for_model()` is for the model: short, says what to do next, and holds no
path, no secret and no name outside the session's scope. Codes are stable; texts may change.
"""

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from toolcrib.definitions import JsonObject


class ToolcribError(Exception):
    """Base of all of them."""

    code: ClassVar[str] = "toolcrib_error"


class ConfigError(ToolcribError):
    """A setting, an argument or a file of the operator's is wrong; nothing was changed."""

    code = "config_invalid"


class DefinitionError(ToolcribError):
    """One tool's definition cannot be used; its siblings can."""

    code = "definition_invalid"


class AssemblyError(ToolcribError):
    """An assembly would have lost a core tool (S8)."""

    code = "core_tool_lost"


class ModelUnavailable(ToolcribError):
    """The embedding model is missing or damaged; lexical search works without it (K14)."""

    code = "model_unavailable"


class RequiredToolsMissing(ToolcribError):
    """A session was promised tools that it does not have (S22)."""

    code = "required_tools_missing"

    def __init__(self, missing: tuple[str, ...]) -> None:
        names = ", ".join(f"`{name}`" for name in missing)
        super().__init__(f"This session requires {names}, which it does not have: check its toolsets and sources.")
        self.missing = missing


class SourceError(ToolcribError):
    """A source of tools failed."""

    code = "source_failed"


class SourceUnavailable(SourceError):
    """The source cannot be reached now."""

    code = "source_unavailable"


class SourceProtocolError(SourceError):
    """The source answered something that its protocol does not allow."""

    code = "source_protocol"


class ModelError(ToolcribError):
    """The endpoint of a model failed, cannot be reached, or answered what nobody understands."""

    code = "model_failed"


class ModelRefused(ModelError):
    """The endpoint says that it does not take such a request."""

    code = "model_refused"


class CallError(ToolcribError):
    """A call that was refused or failed. What the model reads is `for_model()`."""

    code = "call_failed"

    def __init__(self, message: str, *, detail: str | None = None, extra: "JsonObject | None" = None) -> None:
        super().__init__(detail or message)
        self.message = message
        """The sentence for the model."""
        self.extra = extra or {}
        """More for the model, by key: the schema that the arguments must fit, what was found before."""

    def for_model(self) -> "JsonObject":
        """The answer that the model reads in place of a result."""
        return {"error": self.message, "code": self.code, **self.extra}


class InvalidCall(CallError):
    """The call cannot be understood; the text says what to send."""

    code = "invalid_call"


class CallDirectly(CallError):
    """The tool is in the array: call it by its own name (S6)."""

    code = "call_directly"


class ToolNotAvailable(CallError):
    """The name is no tool of this session, for whatever reason (S20, X6)."""

    code = "tool_not_available"


class InvalidArguments(CallError):
    """The arguments do not fit the tool's schema (X5). Nothing ran."""

    code = "invalid_arguments"


class GuardrailRefused(CallError):
    """A guardrail said no, or failed, which means no (X14)."""

    code = "guardrail_refused"


class HookRejected(CallError):
    """A hook said no, failed, or tried to change the tool."""

    code = "hook_rejected"


class ApprovalRequired(CallError):
    """Somebody must approve, and nobody could be asked."""

    code = "approval_required"


class ApprovalDenied(CallError):
    """Somebody was asked and said no."""

    code = "approval_denied"


class CheckpointFailed(CallError):
    """The checkpoint before a change could not be made, so the change was not made either."""

    code = "checkpoint_failed"


class DeadlineExceeded(CallError):
    """The tool did not answer in time."""

    code = "deadline_exceeded"


class TooBusy(CallError):
    """Too many calls wait for the same place."""

    code = "too_busy"


class ToolFailed(CallError):
    """The tool was run and failed."""

    code = "tool_failed"


class SearchRefused(CallError):
    """The progress guard stopped a search that could not help (X7)."""

    code = "search_refused"


class SourceRefused(ToolFailed):
    """An MCP server answered the call with a protocol error; relayed as it is where the caller speaks MCP."""

    code = "source_refused"

    def __init__(self, rpc_code: int, message: str, data: object = None) -> None:
        super().__init__(f"The server refused the call: {message[:500]}", detail=f"{rpc_code}: {message[:500]}")
        self.rpc_code = rpc_code
        self.rpc_message = message
        self.rpc_data = data
