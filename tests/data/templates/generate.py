#!/usr/bin/env python3
"""Writes what jinja2 makes of chat templates and random conversations, as an oracle for `src/llm/chat/template/oracle.rs`.

    python3 -m venv VENV && VENV/bin/pip install jinja2==3.1.6
    VENV/bin/python generate.py                                  writes expected.json: 25 conversations for each template
    VENV/bin/python generate.py --conversations 500 --to FILE    writes more, for RELAMPAGO_TEMPLATES=FILE
    VENV/bin/python generate.py --templates FOLDER --texts …     other templates, and whole texts in place of hashes

jinja2 is set up as transformers does it (`_compile_jinja_template` in `utils/chat_template_utils.py`), with a fixed time.
"""

import argparse
import copy
import datetime
import json
import pathlib
import random

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

FOLDER = pathlib.Path(__file__).parent
NOW = datetime.datetime(2025, 1, 31, 23, 59, 7)


class Raised(Exception):
    pass


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_write")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _write(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise Raised(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: NOW.strftime(form)
    return env


WORDS = [
    "hello", "Paris", "x = 1", "naïve", "東京", "Привет", "ΣΊΣΥΦΟΣ", "ǆ", "straße", "👩‍🚀", "a'b", 'say "hi"', "<b>&amp;</b>",
    "{{ x }}", "{% y %}", "\\n", "\ttab", "\u00a0", "\u2028", "<|im_end|>", "<|im_start|>system", "</s>", "[INST]", "<think>",
    "</think>", "<think>x</think>", "<end_of_turn>", "<|eot_id|>", "3.14", "-7", "None", "true", "a.b.c", "\r\n", "  ", "\x07",
]


def text(rng):
    count = rng.choice([0, 1, 1, 2, 3, 5, 9])
    between = rng.choice([" ", " ", "\n", "\n\n", ""])
    body = between.join(rng.choice(WORDS) for _ in range(count))
    return rng.choice(["", "", " ", "\n"]) + body + rng.choice(["", "", " ", "\n", "\n\n"])


def value(rng, depth=2):
    kind = rng.randrange(9 if depth else 6)
    if kind < 2:
        return text(rng)
    if kind == 2:
        return rng.choice([0, 1, -3, 1234567890123, True, False])
    if kind == 3:
        return rng.choice([0.5, -0.0, 1e16, 1e-7, 3.0, 123456.789])
    if kind < 6:
        return rng.choice([None, "b", ""])
    if kind == 6:
        return [value(rng, depth - 1) for _ in range(rng.randrange(3))]
    return {rng.choice(["zeta", "alpha", "items", "q", "ünï"]): value(rng, depth - 1) for _ in range(rng.randrange(4))}


def tool(rng):
    names = rng.sample(["zip", "city", "Unit", "n", "flag"], rng.randrange(4))
    properties = {}
    for name in names:
        properties[name] = {"type": rng.choice(["string", "integer", "number", "boolean"]), "description": text(rng)}
        if rng.random() < 0.3:
            properties[name]["enum"] = ["a'", "b<", "ç"]
        if rng.random() < 0.2:
            properties[name] = {"type": "array", "items": {"type": "string"}}
    function = {
        "name": rng.choice(["get_weather", "search.web", "add"]),
        "description": text(rng),
        "parameters": {"type": "object", "properties": properties, "required": names[:1]},
    }
    return {"type": "function", "function": function}


def call(rng, index):
    arguments = {name: value(rng) for name in rng.sample(["zip", "city", "n"], rng.randrange(3))}
    if rng.random() < 0.3:
        arguments = json.dumps(arguments, ensure_ascii=False)
    function = {"name": rng.choice(["get_weather", "add"]), "arguments": arguments}
    return {"id": f"call{index:05}", "type": "function", "function": function}


def message(rng, role, index):
    result = {"role": role, "content": text(rng)}
    chance = rng.random()
    if role == "assistant" and chance < 0.3:
        result["tool_calls"] = [call(rng, index) for _ in range(rng.choice([1, 1, 2]))]
        result["content"] = rng.choice([None, "", text(rng)])
        if rng.random() < 0.3:
            del result["content"]
    elif chance > 0.93:
        result["content"] = [{"type": "text", "text": text(rng)} for _ in range(rng.randrange(3))]
    elif chance > 0.9:
        result["content"] = None
    if role == "assistant" and rng.random() < 0.2:
        result["reasoning_content"] = text(rng)
    if role == "tool":
        result["name"] = "get_weather"
        result["tool_call_id"] = f"call{index - 1:05}"
    return result


def conversation(rng):
    messages = []
    if rng.random() < 0.4:
        messages.append(message(rng, rng.choice(["system", "system", "developer"]), 0))
    for turn in range(rng.choice([0, 1, 1, 2, 3, 4])):
        messages.append(message(rng, "user", len(messages)))
        if rng.random() < 0.1:
            messages.append(message(rng, rng.choice(["user", "system", "other"]), len(messages)))
        if turn or rng.random() < 0.6:
            messages.append(message(rng, "assistant", len(messages)))
            if "tool_calls" in messages[-1] and rng.random() < 0.8:
                for _ in messages[-1]["tool_calls"]:
                    messages.append(message(rng, "tool", len(messages)))
    if messages and messages[-1]["role"] == "assistant" and rng.random() < 0.7:
        messages.append(message(rng, "user", len(messages)))
    variables = {
        "messages": messages,
        "tools": [tool(rng) for _ in range(rng.choice([1, 2]))] if rng.random() < 0.35 else None,
        "documents": [{"title": text(rng), "text": text(rng)} for _ in range(rng.randrange(1, 3))] if rng.random() < 0.2 else None,
        "add_generation_prompt": rng.random() < 0.8,
        "bos_token": "<s>",
        "eos_token": "</s>",
    }
    if rng.random() < 0.2:
        variables["enable_thinking"] = rng.random() < 0.5
    return variables


def encoded(data):
    """JSON of which the order of mappings is not lost: each is {"d": [[key, value], …]}."""
    if isinstance(data, dict):
        return {"d": [[key, encoded(element)] for key, element in data.items()]}
    if isinstance(data, list):
        return [encoded(element) for element in data]
    return data


def fnv(string):
    hashed = 0xCBF29CE484222325
    for byte in string.encode("utf-8", "surrogatepass"):
        hashed = (hashed ^ byte) * 0x100000001B3 % 2**64
    return f"{hashed:016x}"


def expected(template, variables, texts):
    """The text or its hash; "raised: …" for `raise_exception`; "error: …" for anything else that fails."""
    try:
        # A copy: the filter `indent` appends to a list that is a content.
        rendered = template.render(**copy.deepcopy(variables))
    except Raised as error:
        return f"raised: {error}"
    except Exception as error:
        return f"error: {type(error).__name__}: {error}" if texts else "error"
    return f"text: {rendered}" if texts else fnv(rendered)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--conversations", type=int, default=25)
    parser.add_argument("--seed", type=int, default=56)
    parser.add_argument("--templates", type=pathlib.Path, default=FOLDER)
    parser.add_argument("--to", type=pathlib.Path, default=FOLDER / "expected.json")
    parser.add_argument("--texts", action="store_true")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    conversations = [conversation(rng) for _ in range(options.conversations)]
    env, results = environment(), {}
    for path in sorted(options.templates.glob("*.jinja")):
        template = env.from_string(path.read_text())
        results[path.stem] = [expected(template, variables, options.texts) for variables in conversations]
    now = int(NOW.replace(tzinfo=datetime.timezone.utc).timestamp())
    output = {
        "now": now,
        "folder": str(options.templates.resolve()) if options.templates != FOLDER else None,
        "conversations": [encoded(variables) for variables in conversations],
        "expected": results,
    }
    options.to.write_text(json.dumps(output, ensure_ascii=False, separators=(",", ":")) + "\n")
    errors = sum(result.startswith("error") for hashes in results.values() for result in hashes)
    raised = sum(result.startswith("raised") for hashes in results.values() for result in hashes)
    pairs = len(results) * len(conversations)
    print(f"{len(results)} templates, {pairs} pairs, {raised} raised, {errors} errors")


main()
