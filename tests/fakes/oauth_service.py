"""An authorization server and a protected MCP server, over real HTTP, on the official SDK's server side.

Two addresses, as in the wild: what guards the tokens is not what serves the tools. Registration is dynamic, PKCE is
checked by the SDK, tokens end when the test says so, and renewal rotates the refresh token.
"""

import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from tests.fakes.web import serve


@dataclass
class Service:
    """Everything that the two servers know, and what happened."""

    expires_in: int = 3600
    refuses: bool = False
    """Whether the person says no."""
    wrong_state: bool = False
    url: str = ""
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    access: dict[str, AccessToken] = field(default_factory=dict)
    refresh: dict[str, RefreshToken] = field(default_factory=dict)
    registrations: int = 0
    exchanges: int = 0
    renewals: int = 0
    authorizations: int = 0

    def expire_everything(self) -> None:
        """Every access token ends now."""
        self.access.clear()

    # What the SDK's routes ask of a provider

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.registrations += 1
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        self.authorizations += 1
        back = str(params.redirect_uri)
        state = "not-the-state" if self.wrong_state else params.state
        if self.refuses:
            return construct_redirect_uri(back, error="access_denied", state=state)
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(back, code=code.code, state=state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        self.exchanges += 1
        del self.codes[authorization_code.code]
        return self._issue(client, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.renewals += 1
        del self.refresh[refresh_token.token]
        return self._issue(client, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def verify_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def _issue(self, client: OAuthClientInformationFull, resource: str | None) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.access[access] = AccessToken(token=access, client_id=client.client_id, scopes=[], resource=resource)
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client.client_id, scopes=[], resource=resource)
        return OAuthToken(access_token=access, expires_in=self.expires_in, refresh_token=refresh)


@asynccontextmanager
async def oauth_service(service: Service) -> AsyncGenerator[Service]:
    """Both servers, running; `service.url` is the MCP endpoint."""

    def authorization(base: str) -> Starlette:
        options = ClientRegistrationOptions(enabled=True)
        return Starlette(
            routes=create_auth_routes(service, issuer_url=AnyHttpUrl(base), client_registration_options=options)
        )

    async with serve(authorization) as issuer:

        def protected(base: str) -> Starlette:
            auth = AuthSettings(
                issuer_url=AnyHttpUrl(issuer),
                resource_server_url=AnyHttpUrl(f"{base}/mcp"),
                validate_token_resource=True,
            )
            server = MCPServer("protected", token_verifier=service, auth=auth)

            @server.tool()
            def echo(text: str) -> str:
                """Repeats a text."""
                return text

            return server.streamable_http_app()

        async with serve(protected) as base:
            service.url = f"{base}/mcp"
            yield service
