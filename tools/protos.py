"""`make proto`: write the modules of src/twinlog/ordering/proto from their .proto files.

Takes the directory to write under (default: src); a test writes elsewhere and compares. The imports in the
modules follow the place of the .proto files under src, so src must be the root given to the compiler.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "src"


def generate(target: Path) -> None:
    """Run the compiler over every .proto file."""
    files = sorted(path.relative_to(SOURCES) for path in SOURCES.glob("twinlog/ordering/proto/*.proto"))
    options = [f"-I{SOURCES}", f"--python_out={target}", f"--pyi_out={target}"]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *options, *map(str, files)], check=True)


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCES)
