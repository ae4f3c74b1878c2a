"""The target for atheris, which is led by what code a file reaches: everything that is done to a file.

python -m tools.fuzzing.atheris_target [libFuzzer's options] SEEDS...
"""

import sys

import atheris

with atheris.instrument_imports(include=["gguf_schema"]):
    from tools.fuzzing.exercise import exercise_all


def test_one(data: bytes) -> None:
    """Whatever is raised is a finding."""
    exercise_all(data)


if __name__ == "__main__":
    atheris.Setup(sys.argv, test_one)
    atheris.Fuzz()
