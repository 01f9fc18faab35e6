"""python -m tilegate_ci: what ci/gate runs."""

import sys

if __name__ == "__main__":
    try:
        from tilegate_ci.cli import main

        sys.exit(main(sys.argv[1:]))
    except ImportError as problem:
        sys.stderr.write(
            f"gate: error: {sys.executable} lacks {problem.name}: run ci/test, which makes "
            "build/venv, or pip install -r ci/requirements.txt\n"
        )
        sys.exit(2)
