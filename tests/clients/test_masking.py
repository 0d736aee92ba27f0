"""What a change of a client's file shows: keys, commands and harmless words, and of the rest nothing."""

import pytest

from toolcrib.clients.base import ClientServer
from toolcrib.clients.masking import masked, open_texts

SERVER = ClientServer(
    name="a",
    raw={},
    command="npx",
    args=("-y", "mcp-remote", "--api-key=k-123456", "API_KEY=v-123456", "X-API-Key: h-123456", "true", "NAME="),
    url="https://h/mcp?token=q-123456",
)
SHOWN = open_texts([SERVER])


@pytest.mark.requirement("X24")
@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ('  "command": "npx",', '  "command": "npx",'),
        ('  "args": ["-y", "mcp-remote"]', '  "args": ["-y", "mcp-remote"]'),
        ('"--api-key=k-123456"', '"--api-key=***"'),
        ('["-e", "API_KEY=v-123456", "X-API-Key: h-123456"]', '["***", "API_KEY=***", "X-API-Key: ***"]'),
        ('"url": "https://h/mcp?token=q-123456"', '"url": "https://h/mcp?token=***"'),
        (r'"KEY": "hunter\"2pass", "B": "abc\/SECRET"', '"KEY": "***", "B": "***"'),
        ('{"x":{"command":"true","env":{"B":"true"},"type":"stdio"}}', '{"x":{"command":"true","env":{"B":"true"},"type":"stdio"}}'),
        ('[mcp_servers.x.env]', '[mcp_servers.x.env]'),
        ('bearer_token = "abc-secret"', 'bearer_token = "***"'),
        ('TOKEN = """abc', "TOKEN = ***"),
        ("    TOKEN: it-is-secret", "    TOKEN: ***"),
        ("    TOKEN: 'it''s secret'", "    TOKEN: '***'"),
        ("      folded secret words", "      ***"),
        ("    command: npx", "    command: npx"),
        ("    - mcp-remote", "    - mcp-remote"),
        ("    - s3cret-arg", "    - ***"),
        ("  a: {command: npx, env: {K: abc-secret}}", "  a: {command: npx, env: {K: ***}}"),
        ("""{"apiKey":"sk-1","said":"print('''a=b''')"}""", "***"),
        ("    - NAME=", "    - NAME="),
        ("    Authorization: Basic dXNlcjpwYXNz=", "    Authorization: ***"),
        ("    DB_PASSWORD: hunter2==", "    DB_PASSWORD: ***"),
        ("    TOKEN: abc:", "    TOKEN: ***"),
        ("    - c2VjcmV0=", "    - ***"),
        ("      oBAQC7c2VjcmV0=", "      ***"),
        ("      oBAQC7c2VjcmV0==", "      ***"),
        ("  args: [--key, s3cret==]", "  args: [***, ***]"),
        ("  a: {K: s3cret=, L: s3cret:}", "  a: {K: ***, L: ***}"),
        ("  args: [--key, s3cret=]", "  args: [***, ***]"),
        ("  my server: {command: npx}", "  my server: {command: npx}"),
        ('  my key: "secret"', '  my key: "***"'),
        ("  env:", "  env:"),
        ("tools = [", "tools = ["),
        ('"PIN": "867530"', '"PIN": "***"'),
        ("PIN = '0042'", "PIN = '***'"),
        ("  enabled = true", "  enabled = true"),
        ("  timeout: 30", "  timeout: 30"),
        ("  }", "  }"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_value_is_shown_only_if_it_is_known_to_be_no_secret(line: str, seen: str) -> None:
    assert masked(line, SHOWN) == seen
