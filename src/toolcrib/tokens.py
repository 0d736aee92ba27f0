"""What definitions cost: characters of compact JSON, divided by four (S13).

The estimate is no bill. It is stable, needs no vocabulary, and lies 6 % above o200k on 7,680 real definitions.
"""


def estimate_tokens(chars: int) -> int:
    """Tokens of so many characters, rounded up."""
    return -(-chars // 4)
