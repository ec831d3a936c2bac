"""`twinlog schema`: what may stand in the file, for editors that complete and check YAML."""

from __future__ import annotations

import json

from twinlog.cli import frame


@frame.command(example="twinlog schema > twinlog.schema.json")
def command(ctx: frame.Context) -> None:
    """Print the JSON schema of the file.

    Editors with a YAML language server take it from a first line such as
    `# yaml-language-server: $schema=twinlog.schema.json`.
    """
    from twinlog.spec.schema import json_schema

    schema = json_schema()
    ctx.write(json.dumps(schema, indent=2) + "\n", as_json=schema)
