"""A language model on loopback that says what a script says, in four vendors' dialects.

Real agent CLIs talk to it as to their vendor: Anthropic Messages, OpenAI Responses and Chat
Completions, Gemini. A prompt names its script with `[script NAME]`; which step of it comes next is
told from the conversation alone, so that a resumed session goes on where it was.

    with LLM({"build": [{"shell": "make"}, {"say": "built"}]}) as llm:
        ...  # ANTHROPIC_BASE_URL=llm.url, and a prompt with `[script build]` in it

`python -m llm` in `tests/` runs it alone; `script.py` has what a step may hold.
"""

from llm.server import LLM
from llm.talk import Talk

__all__ = ["LLM", "Talk"]
