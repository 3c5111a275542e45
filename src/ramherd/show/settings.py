"""Settings as lines: name, value, where it came from."""

from collections.abc import Iterator

from ramherd.config.keys import KEYS, Layer
from ramherd.config.load import Config


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
            yield f"{key.name:<14} {key.show(setting.value):<9} {setting.source}"
