"""Every example runs, and exits non-zero if its claim fails. Frameworks come with `make test-adapters`."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDS = {
    "openai_sdk": "openai",
    "anthropic_sdk": "anthropic",
    "openai_agents": "agents",
    "langchain_agent": "langchain_openai",
    "pydantic_ai_agent": "pydantic_ai",
    "json_lines": "toolcrib",
}


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    framework = NEEDS[name]
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed: make test-adapters")
    command = [sys.executable, *arguments, str(EXAMPLES / f"{name}.py")]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.timeout(180)
@pytest.mark.requirement("X28")
@pytest.mark.parametrize("name", sorted(NEEDS))
def test_the_example_holds_what_it_claims(name: str) -> None:
    done = run(name)
    assert done.returncode == 0, done.stderr
    assert "12" in done.stdout


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", ["openai_sdk", "langchain_agent", "openai_agents", "pydantic_ai_agent"])
def test_the_example_fails_if_its_claim_does(name: str, tmp_path: Path) -> None:
    spoiler = f"""
import runpy, sys
sys.path.insert(0, {str(EXAMPLES)!r})
import workshop
workshop.SCRIPT = (workshop.Say("It is 12, I am sure."),)
runpy.run_path({str(EXAMPLES / f"{name}.py")!r}, run_name="__main__")
"""
    if importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed: make test-adapters")
    done = subprocess.run([sys.executable, "-c", spoiler], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "does not hold: the real tool ran" in done.stderr
