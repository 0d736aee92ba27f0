"""Whether to defer: a decision that is a value with its reason (S12–S17).

It depends on the mode, the window of the session's own model and the size of what could be deferred, and on nothing
else. It is made again at every assembly, so removing a server takes effect on the next one.
"""

from dataclasses import dataclass
from typing import Literal

from toolcrib.settings import ToolSearchSettings
from toolcrib.tokens import estimate_tokens

UNKNOWN_WINDOW_TOKENS = 20_000
"""The cut-off when nobody knows the window (S13)."""

Reason = Literal["off", "nothing_to_defer", "on", "over_threshold", "below_threshold"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateDecision:
    """Whether the deferrable tools are replaced by the bridge, and why."""

    defer: bool
    reason: Reason
    deferrable: int
    """Tools that could be deferred."""
    tokens: int
    """What their definitions cost on every turn."""
    threshold: int
    """Tokens from which `auto` defers."""
    window: int | None

    def __str__(self) -> str:
        window = "unknown window" if self.window is None else f"window {self.window:,}"
        facts = f"{self.deferrable} deferrable tools, {self.tokens:,} tokens, threshold {self.threshold:,}, {window}"
        return f"{'deferred' if self.defer else 'direct'}: {self.reason} ({facts})"


def threshold_tokens(settings: ToolSearchSettings, window: int | None) -> int:
    """Tokens from which `auto` defers, for a model with this window."""
    if window is None:
        return UNKNOWN_WINDOW_TOKENS
    return min(int(window * settings.threshold_pct / 100), settings.threshold_max_tokens)


def decide_gate(settings: ToolSearchSettings, *, window: int | None, deferrable: int, chars: int) -> GateDecision:
    """Decides for one assembly. A window that is not positive counts as unknown."""
    known = window if window is not None and window > 0 else None
    threshold = threshold_tokens(settings, known)
    tokens = estimate_tokens(chars)
    reason: Reason
    if settings.enabled == "off":
        reason = "off"
    elif deferrable == 0:
        reason = "nothing_to_defer"
    elif settings.enabled == "on":
        reason = "on"
    else:
        reason = "over_threshold" if tokens >= threshold else "below_threshold"
    return GateDecision(
        defer=reason in {"on", "over_threshold"},
        reason=reason,
        deferrable=deferrable,
        tokens=tokens,
        threshold=threshold,
        window=known,
    )
