"""Programs of the npm registry that tests compare with, run by node, which looks in NODE_PATH and the project."""

import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
PACKAGES = {
    "kaitai-struct-compiler": "kaitai-struct-compiler@0.11.0 js-yaml@4.1.0",
    "@huggingface/gguf": "@huggingface/gguf@0.4.6",
}
"""Package → what is to be installed for it."""


def run_node(package: str, script: str, *arguments: str, given: str = "") -> str:
    """What a script that needs a package prints. Without node or the package the calling test skips."""
    node = shutil.which("node")
    if node is None:
        pytest.skip(f"could not import {package}: node is not installed")
    command = [node, "-e", script, *arguments]
    run = subprocess.run(command, cwd=PROJECT, input=given, capture_output=True, encoding="utf-8", timeout=120)
    if "Cannot find module" in run.stderr:
        pytest.skip(f"could not import {package}: npm install --no-save {PACKAGES[package]}")
    assert run.returncode == 0, run.stderr
    return run.stdout
