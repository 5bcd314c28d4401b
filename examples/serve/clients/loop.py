"""OpenAI's client for Python with the server: `pip install openai`, then `python loop.py http://127.0.0.1:8080/v1`."""

import json
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="none")
model = client.models.list().data[0].id

WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "days": {"type": "integer", "minimum": 1, "maximum": 7}},
    "required": ["city", "days"],
}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "The weather of some days.", "parameters": WEATHER}}]


def weather(city, days):
    return json.dumps({"city": city, "forecast": ["rain"] * days})


# A loop of calls and their results: the first answer must call, the others may.
messages = [{"role": "user", "content": "What will the weather be in Paris in the next two days?"}]
for choice in ["required", "auto", "none"]:
    answer = client.chat.completions.create(
        model=model, messages=messages, tools=TOOLS, tool_choice=choice, parallel_tool_calls=False, temperature=0, max_tokens=200
    ).choices[0]
    messages.append(answer.message)
    print(choice, answer.finish_reason, answer.message.content, answer.message.tool_calls)
    for call in answer.message.tool_calls or []:
        arguments = json.loads(call.function.arguments)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": weather(**arguments)})
    if not answer.message.tool_calls:
        break
assert any(message["role"] == "tool" for message in messages if isinstance(message, dict))

# The same call in pieces.
with client.chat.completions.stream(
    model=model, messages=messages[:1], tools=TOOLS, tool_choice="required", parallel_tool_calls=False, temperature=0, max_tokens=200
) as stream:
    for _ in stream:
        pass
    streamed = stream.get_final_completion().choices[0]
whole = messages[1].tool_calls
assert streamed.finish_reason == "tool_calls"
assert [call.function.arguments for call in streamed.message.tool_calls] == [call.function.arguments for call in whole]

# JSON by a schema, probabilities, embeddings and errors.
schema = {"name": "colour", "schema": {"enum": ["red", "green", "blue"]}}
answer = client.chat.completions.create(
    model=model,
    messages=[{"role": "user", "content": "What colour is grass?"}],
    response_format={"type": "json_schema", "json_schema": schema},
    logprobs=True,
    top_logprobs=2,
    seed=1,
)
assert json.loads(answer.choices[0].message.content) in schema["schema"]["enum"]
assert len(answer.choices[0].logprobs.content[0].top_logprobs) == 2
vectors = client.embeddings.create(model=model, input=["The cat sleeps.", "A kitten naps."]).data
assert len(vectors) == 2 and len(vectors[0].embedding) > 0
try:
    client.chat.completions.create(model="other", messages=messages[:1])
    raise AssertionError("there is no other model")
except openai.NotFoundError as error:
    assert error.code == "model_not_found"
print("The client in Python has what it asked for.")
