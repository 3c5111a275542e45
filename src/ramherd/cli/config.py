"""`ramherd config`: each setting, its value, and its source."""

import argparse
import json
from collections.abc import Iterator
from typing import Any

from ramherd.cli.main import print_warnings
from ramherd.config.keys import BY_NAME, KEYS, Layer
from ramherd.config.load import Config, add_flags, load_config

EPILOG = """\
examples:
  ramherd config                   every setting, its value and its source
  ramherd config --budget 4GiB     what the flag changes
  ramherd config --json

Later sources override earlier ones: default, ~/.config/ramherd/config.toml,
ramherd.toml (here or above), profile, RAMHERD_* variable, flag. All flags of
`ramherd run` can be given, to see their effect.
"""
NAME_WIDTH = max(len(key.name) for key in KEYS)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    add_flags(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object, bytes and seconds")
    parser.set_defaults(verb=config)


def config(options: argparse.Namespace) -> int:
    loaded = load_config(options)
    print_warnings(loaded.warnings)
    if options.json:
        print(json.dumps(as_json(loaded)))
    else:
        print("\n".join(render_config(loaded)))
    return 0


def render_config(config: Config) -> Iterator[str]:
    yield from render_layer(config.settings)
    for name, layer in config.profiles.items():
        yield ""
        yield f"[profile.{name}]" + (" (in use)" if name == config.profile else "")
        yield from render_layer(layer)


def render_layer(layer: Layer) -> Iterator[str]:
    for key in KEYS:
        if key.name in layer:
            setting = layer[key.name]
            yield f"{key.name:<{NAME_WIDTH}} {key.show(setting.value):<9} {setting.source}"


def as_json(loaded: Config) -> dict[str, Any]:
    return {
        "files": list(loaded.files),
        "settings": layer_json(loaded.settings),
        "profiles": {name: layer_json(layer) for name, layer in loaded.profiles.items()},
    }


def layer_json(layer: Layer) -> dict[str, Any]:
    return {
        name: {"value": layer[name].value, "source": layer[name].source}
        for name in BY_NAME
        if name in layer
    }
