"""A job as a picture: text for people, DOT for Graphviz. Pure; shown by `twinlog stream describe`."""

from __future__ import annotations

import json
from itertools import pairwise

from twinlog.streams.planning import Plan


def text(plan: Plan) -> str:
    """The job from its sources to its sinks, one part a line."""
    lines = [
        f"{plan.job}: {plan.kind}, {plan.mode}, {plan.guarantee}",
        f"  because {plan.why}",
    ]
    for title, parts in (
        ("reads", plan.sources),
        ("does", plan.steps),
        ("keeps", plan.state),
        ("writes", plan.sinks),
    ):
        if parts:
            lines.append(f"  {title}")
            lines += [f"    {part}" for part in parts]
    return "\n".join(lines) + "\n"


def dot(plan: Plan) -> str:
    """The same as a graph."""
    nodes: list[str] = []
    edges: list[str] = []

    def node(name: str, label: str, shape: str) -> str:
        nodes.append(f"  {name} [shape={shape}, label={json.dumps(label, ensure_ascii=False)}];")
        return name

    sources = [node(f"source{number}", label, "cylinder") for number, label in enumerate(plan.sources)]
    steps = [node(f"step{number}", label, "box") for number, label in enumerate(plan.steps)]
    states = [node(f"state{number}", label, "folder") for number, label in enumerate(plan.state)]
    sinks = [node(f"sink{number}", label, "cylinder") for number, label in enumerate(plan.sinks)]
    edges += [f"  {source} -> {steps[0]};" for source in sources]
    edges += [f"  {one} -> {other};" for one, other in pairwise(steps)]
    edges += [f"  {steps[-1]} -> {sink};" for sink in sinks]
    edges += [f"  {steps[-1]} -> {state} [style=dashed, dir=both];" for state in states]
    title = json.dumps(f"{plan.job}: {plan.mode}, {plan.guarantee}")
    return "\n".join([f"digraph {json.dumps(plan.job)} {{", f"  label={title};", *nodes, *edges, "}", ""])
