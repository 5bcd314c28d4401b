//! The server with a tiny random model, asked over HTTP.

// Much of it is for other tests.
#[allow(dead_code)]
#[path = "../../../tests/support/gguf.rs"]
mod gguf;
#[allow(dead_code)]
#[path = "../../../tests/support/random_models.rs"]
mod random_models;
#[allow(dead_code, unreachable_pub)]
#[path = "../../../tests/support/random.rs"]
mod support;
#[allow(dead_code)]
#[path = "../../../tests/support/vocabulary.rs"]
mod vocabulary;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that ends with the test.
struct Server {
    child: Child,
    url: String,
    model: PathBuf,
}

impl Server {
    fn start(name: &str, arguments: &[&str]) -> Self {
        let shape = random_models::LLAMA.with_context(4096);
        let model =
            std::env::temp_dir().join(format!("relampago-{name}-{}.gguf", std::process::id()));
        std::fs::write(&model, random_models::random_model(shape, 1).0).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_serve"))
            .arg(&model)
            .args([
                "--address",
                "127.0.0.1:0",
                "--name",
                "tiny",
                "--threads",
                "1",
            ])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line.split(' ').next().unwrap().to_owned();
        Self { child, url, model }
    }

    fn address(&self) -> &str {
        self.url
            .trim_start_matches("http://")
            .trim_end_matches("/v1")
    }

    /// Sends JSON; returns the status and the answer's text.
    fn post(&self, route: &str, body: &Value) -> (u16, String) {
        self.send("POST", route, body.to_string().as_bytes())
    }

    fn send(&self, method: &str, route: &str, body: &[u8]) -> (u16, String) {
        let mut stream = self.begin(method, route, body);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    /// Sends a request whose answer is read later.
    fn begin(&self, method: &str, route: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_mins(2)))
            .unwrap();
        let length = body.len();
        // HTTP 1.0 ends answers by closing the connection, and has no chunks.
        let head = format!("{method} /v1/{route} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        stream
    }

    fn json(&self, route: &str, body: &Value) -> (u16, Value) {
        let (status, text) = self.post(route, body);
        (
            status,
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {text}")),
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        std::fs::remove_file(&self.model).ok();
    }
}

/// A request for an answer.
fn question(more: &Value) -> Value {
    let mut body = json!({
        "model": "tiny",
        "messages": [{ "role": "user", "content": "hello" }],
        "max_tokens": 300,
        "temperature": 1.5,
        "seed": 7,
    });
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

fn tools() -> Value {
    json!({
        "tool_choice": "required",
        "tools": [{
            "type": "function",
            "function": {
                "name": "add",
                "description": "Adds numbers.",
                "parameters": {
                    "type": "object",
                    "properties": { "a": { "type": "integer", "maximum": 99, "minimum": 0 }, "b": { "enum": [1, 2] } },
                    "required": ["a", "b"],
                },
            },
        }],
    })
}

/// Joins the chunks of a stream as clients do; returns the message, the finish reason and the number of chunks.
fn joined(text: &str) -> (Value, Value, usize) {
    let mut message = json!({ "role": "", "content": "", "tool_calls": [] });
    let (mut reason, mut count) = (Value::Null, 0);
    let mut lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .peekable();
    while let Some(line) = lines.next() {
        if line == "[DONE]" {
            assert!(lines.peek().is_none());
            return (message, reason, count);
        }
        let chunk: Value = serde_json::from_str(line).unwrap();
        assert_eq!(chunk["object"], "chat.completion.chunk");
        count += 1;
        let Some(choice) = chunk["choices"].get(0) else {
            assert!(chunk["usage"]["completion_tokens"].as_u64().unwrap() > 0);
            continue;
        };
        reason = choice["finish_reason"].clone();
        let add = |to: &mut Value, piece: &Value| {
            let text =
                to.as_str().unwrap_or_default().to_owned() + piece.as_str().unwrap_or_default();
            *to = text.into();
        };
        add(&mut message["role"], &choice["delta"]["role"]);
        add(&mut message["content"], &choice["delta"]["content"]);
        for call in choice["delta"]["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let calls = message["tool_calls"].as_array_mut().unwrap();
            let index = call["index"].as_u64().unwrap() as usize;
            if index == calls.len() {
                let mut call = call.clone();
                call.as_object_mut().unwrap().remove("index");
                calls.push(call);
            } else {
                add(
                    &mut calls[index]["function"]["arguments"],
                    &call["function"]["arguments"],
                );
            }
        }
    }
    panic!("no [DONE] in {text}");
}

#[test]
fn streamed_answers_are_whole_ones_in_pieces() {
    let server = Server::start("streams", &[]);
    for more in [json!({}), json!({ "max_tokens": 5 }), tools()] {
        let (status, whole) = server.json("chat/completions", &question(&more));
        assert_eq!(status, 200, "{whole}");
        let mut request = question(&more);
        request["stream"] = true.into();
        request["stream_options"] = json!({ "include_usage": true });
        let (status, text) = server.post("chat/completions", &request);
        assert_eq!(status, 200, "{text}");
        let (message, reason, count) = joined(&text);
        let choice = &whole["choices"][0];
        assert_eq!(choice["finish_reason"], reason);
        assert!(count > 3, "{text}");
        let content = choice["message"]["content"].as_str().unwrap_or_default();
        assert_eq!(message["content"], content);
        let calls = choice["message"]
            .get("tool_calls")
            .cloned()
            .unwrap_or(json!([]));
        assert_eq!(message["tool_calls"], calls);
        let usage = &whole["usage"];
        let sum =
            usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap();
        assert_eq!(usage["total_tokens"], sum);
    }
}

#[test]
fn calls_go_back_with_their_results() {
    let server = Server::start("calls", &[]);
    let mut request = question(&tools());
    for _ in 0..3 {
        let (status, answer) = server.json("chat/completions", &request);
        assert_eq!(status, 200, "{answer}");
        let message = &answer["choices"][0]["message"];
        assert_eq!(
            answer["choices"][0]["finish_reason"], "tool_calls",
            "{answer}"
        );
        let messages = request["messages"].as_array_mut().unwrap();
        messages.push(message.clone());
        for call in message["tool_calls"].as_array().unwrap() {
            let arguments: Value =
                serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
            assert!(arguments["a"].as_u64().unwrap() <= 99);
            assert!(arguments["b"] == 1 || arguments["b"] == 2);
            messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": "3" }));
        }
    }
    let named = json!({ "tool_choice": { "type": "function", "function": { "name": "sub" } } });
    let mut request = question(&tools());
    request["tool_choice"] = named["tool_choice"].clone();
    let (status, answer) = server.json("chat/completions", &request);
    assert_eq!(
        (status, &answer["error"]["param"]),
        (400, &"tool_choice".into()),
        "{answer}"
    );
}

#[test]
fn options_are_those_of_openai() {
    let server = Server::start("options", &["--body", "100000"]);
    let schema = json!({ "response_format": { "type": "json_schema", "json_schema": {
        "name": "x", "strict": true, "schema": { "enum": ["red", "blue"] },
    } } });
    let (_, answer) = server.json("chat/completions", &question(&schema));
    let content = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(["\"red\"", "\"blue\""].contains(&content), "{answer}");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");

    let logprobs = json!({ "logprobs": true, "top_logprobs": 2, "max_tokens": 4 });
    let (_, answer) = server.json("chat/completions", &question(&logprobs));
    let content = answer["choices"][0]["logprobs"]["content"]
        .as_array()
        .unwrap();
    assert_eq!(content.len(), 4);
    assert_eq!(content[0]["top_logprobs"].as_array().unwrap().len(), 2);
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(answer["usage"]["completion_tokens"], 4);

    for (input, count) in [(json!("hello"), 1), (json!(["hello", "world"]), 2)] {
        let (status, answer) =
            server.json("embeddings", &json!({ "model": "tiny", "input": input }));
        assert_eq!(
            (status, answer["data"].as_array().unwrap().len()),
            (200, count)
        );
        assert_eq!(
            answer["data"][0]["embedding"].as_array().unwrap().len(),
            random_models::WIDTH
        );
    }
    let (status, text) = server.send("GET", "models", b"");
    assert_eq!(status, 200);
    let models: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(models["data"][0]["id"], "tiny");
    assert_eq!(server.send("GET", "models/tiny", b"").0, 200);
}

#[test]
fn wrong_requests_are_errors_in_the_form_of_openai() {
    let server = Server::start("errors", &["--body", "100000"]);
    let long = "a".repeat(5000);
    let messages = |content: Value| json!({ "messages": [{ "role": "user", "content": content }] });
    for (more, status, code) in [
        (json!({ "model": "other" }), 404, json!("model_not_found")),
        (json!({ "messages": [] }), 400, Value::Null),
        (json!({ "messages": "hello" }), 400, Value::Null),
        (messages(json!([{ "type": "image_url" }])), 400, Value::Null),
        (json!({ "temperature": -1 }), 400, Value::Null),
        (json!({ "temperature": "hot" }), 400, Value::Null),
        (json!({ "n": 2 }), 400, Value::Null),
        (json!({ "tools": {} }), 400, Value::Null),
        (
            json!({ "response_format": { "type": "xml" } }),
            400,
            Value::Null,
        ),
        (messages(long.into()), 400, json!("context_length_exceeded")),
        (messages("a".repeat(200_000).into()), 413, Value::Null),
    ] {
        let mut request = question(&more);
        for stream in [false, true] {
            request["stream"] = stream.into();
            let (found, answer) = server.json("chat/completions", &request);
            assert_eq!(
                (found, &answer["error"]["code"]),
                (status, &code),
                "{answer}"
            );
            assert!(
                answer["error"]["message"].as_str().unwrap().len() > 5,
                "{answer}"
            );
            assert_eq!(answer["error"]["type"], "invalid_request_error");
        }
    }
    assert_eq!(server.send("POST", "chat/completions", b"{").0, 400);
    assert_eq!(server.send("GET", "none", b"").0, 404);
    // The server answers as before.
    assert_eq!(
        server
            .post("chat/completions", &question(&json!({ "max_tokens": 1 })))
            .0,
        200
    );
}

/// A request that takes long: a stop string never occurs, and nothing ends the answer.
fn endless() -> Value {
    question(&json!({ "max_tokens": 3900, "stream": true, "logit_bias": { "259": -100 } }))
}

#[test]
fn a_client_that_goes_away_frees_the_model() {
    let server = Server::start("gone", &["--queue", "1", "--answers", "1"]);
    let body = endless().to_string();
    let start = Instant::now();
    let (_, text) = server.post("chat/completions", &endless());
    let whole = start.elapsed();
    assert_eq!(joined(&text).1, "length");
    let mut running = server.begin("POST", "chat/completions", body.as_bytes());
    let mut first = [0; 1];
    running.read_exact(&mut first).unwrap();
    // The next request waits, and one more has no room.
    let waiting = server.begin("POST", "chat/completions", body.as_bytes());
    std::thread::sleep(Duration::from_millis(100));
    let (status, answer) = server.json("chat/completions", &endless());
    assert_eq!(
        (status, &answer["error"]["code"]),
        (429, &json!("queue_full")),
        "{answer}"
    );
    drop((running, waiting));
    let start = Instant::now();
    std::thread::sleep(Duration::from_millis(100));
    let (status, _) = server.post("chat/completions", &question(&json!({ "max_tokens": 1 })));
    assert_eq!(status, 200);
    assert!(
        start.elapsed() < whole / 2,
        "{:?} of {whole:?}",
        start.elapsed()
    );
}

/// The text of a whole answer.
fn content(server: &Server, request: &Value) -> String {
    let (status, answer) = server.json("chat/completions", request);
    assert_eq!(status, 200, "{answer}");
    let content = &answer["choices"][0]["message"]["content"];
    content.as_str().unwrap_or_default().to_owned()
}

#[test]
fn answers_at_once_are_those_one_after_the_other() {
    let server = Server::start("together", &[]);
    let requests: Vec<Value> = (0..12)
        .map(|i| {
            let text = "hello ".repeat(1 + i * i);
            question(&json!({
                "messages": [{ "role": "user", "content": text }],
                "max_tokens": 40 + 10 * i,
                "temperature": 0,
                "logit_bias": { "259": -100 },
            }))
        })
        .collect();
    let wanted: Vec<String> = requests
        .iter()
        .map(|request| content(&server, request))
        .collect();
    let texts = std::thread::scope(|scope| {
        let (server, requests) = (&server, &requests);
        let clients = requests.iter().enumerate().map(|(i, request)| {
            scope.spawn(move || {
                if i % 3 > 0 {
                    return content(server, request);
                }
                let mut request = request.clone();
                request["stream"] = true.into();
                let (status, text) = server.post("chat/completions", &request);
                assert_eq!(status, 200, "{text}");
                joined(&text).0["content"].as_str().unwrap().to_owned()
            })
        });
        let clients: Vec<_> = clients.collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect::<Vec<_>>()
    });
    assert_eq!(texts, wanted);
}

#[test]
fn a_short_answer_does_not_wait_for_a_long_one() {
    let server = Server::start("short", &[]);
    let body = endless().to_string();
    let mut running: Vec<TcpStream> = (0..3)
        .map(|_| server.begin("POST", "chat/completions", body.as_bytes()))
        .collect();
    let mut first = [0; 1];
    running[0].read_exact(&mut first).unwrap();
    let (status, _) = server.post("chat/completions", &question(&json!({ "max_tokens": 3 })));
    assert_eq!(status, 200);
    // The long ones have not ended.
    for stream in &mut running {
        stream.set_nonblocking(true).unwrap();
        let mut rest = Vec::new();
        let end = stream.read_to_end(&mut rest).map_err(|error| error.kind());
        assert_eq!(end, Err(std::io::ErrorKind::WouldBlock));
    }
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_server_after_its_answers() {
    let mut server = Server::start("signal", &[]);
    let request =
        question(&json!({ "stream": true, "max_tokens": 500, "logit_bias": { "259": -100 } }));
    let mut running = server.begin("POST", "chat/completions", request.to_string().as_bytes());
    let mut text = vec![0; 1];
    running.read_exact(&mut text).unwrap();
    let pid = server.child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    running.read_to_end(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(joined(text.split_once("\r\n\r\n").unwrap().1).1, "length");
    assert!(server.child.wait().unwrap().success());
}
