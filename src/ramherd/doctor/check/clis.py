"""The installed agent CLIs, and known facts about them."""

from collections.abc import Collection, Iterator, Sequence

from ramherd.doctor.facts import InstalledCli
from ramherd.doctor.findings import Finding, Severity

RUNTIMES = {
    "bun": "built with Bun",
    "node": "runs on Node",
    "native": "native",
    "script": "a script",
}
# CLIs that restart themselves with a heap of half the RAM: the variable, and the MiB that it saves.
RELAUNCH = {"gemini": ("GEMINI_CLI_NO_RELAUNCH", 110), "qwen": ("QWEN_CODE_NO_RELAUNCH", 140)}


def check_clis(clis: Sequence[InstalledCli], variables: Collection[str]) -> Iterator[Finding]:
    if not clis:
        yield Finding(
            "cli", Severity.HINT, "no agent CLI in PATH",
            "claude, codex, gemini, opencode, qwen and cursor-agent were looked for; any other "
            "command can be run as well",
            "ramherd drill --agents 4   # without an agent",
        )  # fmt: skip
    for cli in clis:
        yield describe(cli)
        if cli.shadowed:
            yield check_shadowed(cli)
        if cli.name in RELAUNCH and RELAUNCH[cli.name][0] not in variables:
            yield check_relaunch(cli.name)


def describe(cli: InstalledCli) -> Finding:
    runtime = RUNTIMES.get(cli.runtime, "of an unknown kind")
    what = f"{cli.name} {cli.version or '(version not told)'}, {runtime}: {cli.path}"
    return Finding("cli", Severity.OK, what)


def check_shadowed(cli: InstalledCli) -> Finding:
    others = ", ".join(f"{version or '?'} at {path}" for path, version in cli.shadowed)
    return Finding(
        "cli-twice", Severity.HINT, f"{cli.name} is installed more than once: also {others}",
        f"{cli.path} is used; cron and services with another PATH may start the other",
        f"type -a {cli.name}",
    )  # fmt: skip


def check_relaunch(name: str) -> Finding:
    variable, saved = RELAUNCH[name]
    return Finding(
        "cli-relaunch", Severity.HINT, f"{name} starts a second process of itself",
        f"it costs {saved} MiB per agent, and its heap may grow to half of the RAM",
        f"export {variable}=true",
    )  # fmt: skip
