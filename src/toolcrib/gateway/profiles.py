"""Who may do what: from a credential to a principal, and from a principal to a scope (X19).

A profile grants; it never adds to what the crib has. The token is looked up anew for every request, so that one that
was revoked counts at once; profiles change with the configuration, and that is read at the start.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from toolcrib.crib import Crib
from toolcrib.errors import ConfigError
from toolcrib.execution.approval import ApprovalPolicy
from toolcrib.intake.naming import nearest
from toolcrib.scope import Scope
from toolcrib.session import Session
from toolcrib.settings import ApprovalRules, ProfileSettings

DEFAULT_PROFILE = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Somebody with a grant."""

    name: str
    profile: str
    scope: Scope
    window: int | None
    required: tuple[str, ...] = ()
    policy: ApprovalPolicy | None = None
    """Approval rules besides the general ones."""

    @property
    def is_restricted(self) -> bool:
        """Whether what it sees is its own matter and must not be cached for others."""
        return self.scope != Scope(always_visible=self.scope.always_visible)


class Profiles:
    """The profiles of one configuration."""

    def __init__(self, settings: Mapping[str, ProfileSettings]) -> None:
        self._settings = {DEFAULT_PROFILE: ProfileSettings(), **settings}
        self._principals: dict[tuple[str, str], Principal] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """All profiles."""
        return tuple(self._settings)

    @property
    def differ(self) -> bool:
        """Whether some profile does not get what every other gets."""
        return any(settings != ProfileSettings() for settings in self._settings.values())

    def principal(self, name: str, profile: str = DEFAULT_PROFILE) -> Principal:
        """The principal of that name under a profile; the same one every time. Raises `ConfigError`."""
        principal = self._principals.get((name, profile))
        if principal is None:
            principal = self._principals[name, profile] = self._build(name, profile)
        return principal

    def _build(self, name: str, profile: str) -> Principal:
        settings = self._settings.get(profile)
        if settings is None:
            hint = nearest(profile, self._settings)
            raise ConfigError(f"There is no profile `{profile}`{f': did you mean `{hint}`?' if hint else '.'}")
        scope = Scope(always_visible=frozenset(settings.always_visible)).narrow(
            enabled=settings.toolsets,
            disabled=settings.disabled_toolsets,
            tools=settings.tools,
            read_only=settings.read_only,
        )
        own = settings.approvals
        return Principal(
            name=name,
            profile=profile,
            scope=scope,
            window=settings.context,
            required=settings.required_tools,
            policy=ApprovalPolicy.of(own, where=f"profiles.{profile}.approvals") if own != ApprovalRules() else None,
        )

    def check(self, crib: Crib) -> None:
        """Raises `ConfigError` for a profile that names a toolset that no source has."""
        known = {source.name for source in crib.sources} | {toolset.name for toolset in crib.inventory.toolsets}
        for profile, settings in self._settings.items():
            for name in (*(settings.toolsets or ()), *settings.disabled_toolsets):
                if name not in known:
                    hint = nearest(name, known)
                    meant = f": did you mean `{hint}`?" if hint else "."
                    raise ConfigError(f"profiles.{profile}: there is no toolset `{name}`{meant}")


def open_session(crib: Crib, principal: Principal) -> Session:
    """A session of the principal."""
    return crib.open_session(
        scope=principal.scope,
        window=principal.window,
        required=(),
        principal=principal.name,
        policy=principal.policy,
    )
