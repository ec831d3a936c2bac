"""Makes `src/twinlog/spec/kafka_settings.json` by asking Kafka's own classes.

    python tools/kafka_settings.py CLASSPATH > src/twinlog/spec/kafka_settings.json

CLASSPATH is that of a whole Kafka ("dir/*" is enough). Run it when the version of Kafka changes.
Written down are facts only: name, kind, default, limits, and how a setting can be changed at run time.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import java.util.*;
import java.util.regex.*;
import org.apache.kafka.common.config.ConfigDef;

public class Settings {
    public static void main(String[] arguments) {
        System.out.println(org.apache.kafka.common.utils.AppInfoParser.getVersion());
        var modes = org.apache.kafka.server.config.DynamicBrokerConfig.dynamicConfigUpdateModes();
        print("broker", kafka.server.KafkaConfig.configDef().configKeys(), modes);
        print("topic", org.apache.kafka.storage.internals.log.LogConfig.configKeys(), Map.of());
        var synonyms = org.apache.kafka.server.config.ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS;
        for (var entry : new TreeMap<>(synonyms).entrySet())
            line("synonym", entry.getKey(), entry.getValue(), "", "", "");
    }

    static void print(String scope, Map<String, ConfigDef.ConfigKey> keys, Map<String, String> modes) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(keys).values()) {
            String limits = key.validator == null ? "" : key.validator.toString();
            String kind = key.type.toString().toLowerCase();
            line(scope, key.name, kind, text(key.defaultValue), limits, modes.getOrDefault(key.name, ""));
        }
    }

    static String text(Object value) {
        if (value == null || value == ConfigDef.NO_DEFAULT_VALUE) return "";
        if (value instanceof Class<?> type) return type.getName();
        if (value instanceof List<?> list) return String.join(",", (List<String>) list);
        return value.toString();
    }

    static void line(String... cells) {
        System.out.println(String.join("\\t", cells));
    }
}
"""
RANGE = re.compile(r"\[(-?[0-9.]+),\.\.\.(?:,(-?[0-9.]+))?\]")
CHOICES = re.compile(r"(?:\(case insensitive\) )?\[([A-Za-z0-9_]+(?:, [A-Za-z0-9_]+)*)\]")


def ask(class_path: str) -> str:
    """What Kafka says about its settings, one a line."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "Settings.java")
        source.write_text(PROGRAM)
        command = ["java", "-cp", class_path, str(source)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def limits_of(text: str) -> dict[str, object]:
    """The limits that a validator names: `[1,...,17]` or `[gzip, lz4]`."""
    if found := RANGE.fullmatch(text):
        low, high = found.groups()
        return {"min": json.loads(low), **({"max": json.loads(high)} if high else {})}
    if found := CHOICES.fullmatch(text):
        return {"choices": sorted(found[1].split(", ")), **({"any_case": True} if text[0] == "(" else {})}
    return {}


def table(answer: str) -> dict[str, object]:
    """The content of the file."""
    version, *lines = answer.splitlines()
    result: dict[str, dict[str, object]] = {"broker": {}, "topic": {}, "synonym": {}}
    for line in lines:
        scope, name, kind, default, limits, mode = line.split("\t")
        facts: object = kind
        if scope != "synonym":
            facts = {"kind": kind} | ({"default": default} if default else {}) | limits_of(limits)
            facts |= {"dynamic": mode} if mode else {}
        result[scope][name] = facts
    return {"version": version, **result}


def main() -> None:
    """Print the file; one setting a line, so that a diff between versions can be read."""
    content = table(ask(sys.argv[1]))
    blocks = [f' "version": {json.dumps(content["version"])}']
    for scope in ("broker", "topic", "synonym"):
        rows = [f"  {json.dumps(name)}: {json.dumps(facts)}" for name, facts in content[scope].items()]  # type: ignore[attr-defined]
        blocks.append(f' "{scope}": {{\n' + ",\n".join(rows) + "\n }")
    print("{\n" + ",\n".join(blocks) + "\n}")


if __name__ == "__main__":
    main()
