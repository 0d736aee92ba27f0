"""Approval: somebody agrees to exactly what runs, once, and not for ever.

It is no hook, because it has to come after every hook that could still change something. A grant is bound to the
toolset, the tool, the fingerprint of its definition, the final arguments and the principal (X14); change any of them
and it is another question. Rules match the real tool, so no rule can be met by the bridge's name. What a source says
of its own tool, the short name that it gave it included, may make a verdict stricter, never laxer.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Protocol

from toolcrib.definitions import Call, Fingerprint, Tool, canonical_json, fingerprint_of
from toolcrib.errors import ApprovalDenied, ApprovalRequired, CallError
from toolcrib.execution.dispatch import Exchange
from toolcrib.execution.foreign import settled, told
from toolcrib.execution.hooks import own_copy
from toolcrib.limits import APPROVAL_TTL_S, APPROVALS_PENDING
from toolcrib.settings import ApprovalRules, Verdict

_STRICTNESS: Mapping[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """What somebody is asked to agree to."""

    call: Call
    binding: Fingerprint
    """What the answer is valid for."""
    rule: str
    """The rule that asks."""
    where: str = "approvals"
    """The section of the configuration that has it."""
    exchange: Exchange | None = None
    """Who called, where the call is relayed from another MCP client."""


class Approver(Protocol):
    """Asks somebody."""

    async def __call__(self, request: ApprovalRequest) -> bool:
        """Whether they agree. May take its time; raising means no."""
        ...


def binding_of(call: Call) -> Fingerprint:
    """What a grant is bound to: all that decides what will happen."""
    return fingerprint_of(
        call.tool.toolset.encode(),
        call.tool.name.encode(),
        call.tool.fingerprint.encode(),
        canonical_json(call.arguments),
        call.principal.encode(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalPolicy:
    """Which calls are asked about."""

    default: Verdict = "allow"
    rules: Mapping[str, Verdict] = field(default_factory=dict[str, Verdict])
    destructive: Verdict = "allow"
    """For tools that say of themselves that they destroy something; makes a verdict stricter, never laxer."""
    where: str = "approvals"
    """The section of the configuration that it comes from."""

    @classmethod
    def of(cls, rules: ApprovalRules, *, where: str = "approvals") -> "ApprovalPolicy":
        """The policy of a section of the configuration."""
        return cls(default=rules.default, rules=rules.rules, destructive=rules.destructive, where=where)

    def decide(self, call: Call) -> tuple[Verdict, str]:
        """The verdict, and the rule that gave it. `*` counts where nothing else matches; else the strictest."""
        return self.decide_on(call.tool)

    def decide_on(self, tool: Tool) -> tuple[Verdict, str]:
        """The verdict on all calls of a tool: the arguments have no part in it.

        A rule that meets only the tool's own short name counts if it is stricter than the rest: a server could take
        any other by the names that it chooses.
        """
        if not self.rules and tool.traits.destructive is not True:
            return self.default, "default"
        rules: list[tuple[Verdict, str]] = [(verdict, pattern) for pattern, verdict in self.rules.items()]
        matches = [rule for rule in rules if _meets(rule[1], tool)]
        stricter = [rule for rule in rules if _tightens(rule[1], rule[0], tool)]
        specific = [match for match in matches if match[1] != "*"] or matches or [(self.default, "default")]
        if tool.traits.destructive is True:
            specific.append((self.destructive, "destructive"))
        # Of equals the first is named: a rule with the tool's own name says more than `*` or the default.
        return max([*stricter, *specific], key=lambda match: _STRICTNESS[match[0]])

    def idle_rules(self, tools: Iterable[Tool]) -> Iterator[str]:
        """The patterns of rules that no tool meets; `*` may always stand there."""
        known = tuple(tools)
        for pattern, verdict in self.rules.items():
            if pattern != "*" and not any(_meets(pattern, tool) or _tightens(pattern, verdict, tool) for tool in known):
                yield pattern


def _meets(pattern: str, tool: Tool) -> bool:
    return fnmatchcase(tool.name, pattern) or fnmatchcase(f"{tool.toolset}/{tool.name}", pattern)


def _tightens(pattern: str, verdict: Verdict, tool: Tool) -> bool:
    """Whether a rule meets the tool's own short name, and may: one that allows never does, and `*` is no name."""
    return verdict != "allow" and pattern != "*" and fnmatchcase(tool.leaf, pattern)


class Approvals:
    """The grants of one crib."""

    def __init__(
        self,
        *,
        policy: ApprovalPolicy,
        clock: Callable[[], float],
        approver: Approver | None = None,
        ttl_s: float = APPROVAL_TTL_S,
    ) -> None:
        self.policy = policy
        self._approver = approver
        self._clock = clock
        self._ttl_s = ttl_s
        self._grants: dict[Fingerprint, float] = {}
        self._pending: dict[str, int] = {}

    def grant(self, binding: Fingerprint) -> None:
        """Agrees in advance to one call with this binding."""
        self._grants[binding] = self._clock() + self._ttl_s

    async def require(self, call: Call, exchange: Exchange | None = None, *, own: ApprovalPolicy | None = None) -> None:
        """Returns if the call may run. Raises `ApprovalDenied` or `ApprovalRequired`."""
        question = self.question(call, exchange, own=own)
        if question is not None:
            await self.ask(question)

    def question(
        self, call: Call, exchange: Exchange | None = None, *, own: ApprovalPolicy | None = None
    ) -> ApprovalRequest | None:
        """What has to be asked before the call may run, if anything. Raises `ApprovalDenied`.

        `own` is the caller's policy besides the general one: the stricter verdict counts.
        """
        verdict, rule = self.policy.decide(call)
        where = self.policy.where
        if own is not None:
            narrower, its_rule = own.decide(call)
            if _STRICTNESS[narrower] > _STRICTNESS[verdict]:
                verdict, rule, where = narrower, its_rule, own.where
        if verdict == "allow":
            return None
        if verdict == "deny":
            raise ApprovalDenied(
                f"`{call.tool.name}` is not allowed here. Do not try it again.",
                detail=f"denied by rule {rule!r} of {where}",
            )
        return ApprovalRequest(call=call, binding=binding_of(call), rule=rule, where=where, exchange=exchange)

    def allows(self, tool: Tool, *, own: ApprovalPolicy | None = None) -> bool:
        """Whether all calls of the tool may run without anybody being asked, under the policy of this moment."""
        return self.policy.decide_on(tool)[0] == "allow" and (own is None or own.decide_on(tool)[0] == "allow")

    async def ask(self, request: ApprovalRequest) -> None:
        """Returns if somebody agrees, or has agreed. Raises `ApprovalDenied` or `ApprovalRequired`."""
        name = request.call.tool.name
        if self._consume(request.binding):
            return
        if self._approver is None:
            raise ApprovalRequired(
                f"`{name}` needs somebody's approval, and nobody can be asked here. "
                "Do not try it again; say what you wanted to do.",
                detail=f"rule {request.rule!r} of {request.where} asks, and there is no approver",
            )
        if not await self._ask(self._approver, request):
            raise ApprovalDenied(f"The user refused `{name}` with these arguments. Do not try it again unchanged.")

    def _consume(self, binding: Fingerprint) -> bool:
        """Uses up a grant. There is no await between looking and taking, so no second call can take the same one."""
        expires = self._grants.pop(binding, None)
        return expires is not None and self._clock() < expires

    async def _ask(self, approver: Approver, request: ApprovalRequest) -> bool:
        principal = request.call.principal
        if self._pending.get(principal, 0) >= APPROVALS_PENDING:
            raise ApprovalRequired(
                "Too many approvals are waiting for an answer. Wait for those before you ask for more."
            )
        self._pending[principal] = self._pending.get(principal, 0) + 1
        try:
            async with asyncio.timeout(self._ttl_s):
                return await settled(approver(replace(request, call=own_copy(request.call)))) is True
        except TimeoutError:
            raise ApprovalRequired("Nobody answered the approval in time.") from None
        except CallError:
            raise
        except Exception as error:  # a crashed guard refuses (X14)
            raise ApprovalDenied(
                "The approval could not be asked for, so the call was refused.", detail=told(repr, error)
            ) from None
        finally:
            self._pending[principal] -= 1
            if not self._pending[principal]:
                del self._pending[principal]
