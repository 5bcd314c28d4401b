"""llama.cpp through xllamacpp: prints the line of JSON that examples/llm_bench.rs prints."""

import argparse
import json
import sys
import time

import xllamacpp


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokens", required=True)
    parser.add_argument("--n", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def main():
    given = arguments()
    params = xllamacpp.CommonParams()
    params.model.path = given.model
    params.n_ctx = 512
    params.n_parallel = 1
    params.warmup = False
    params.cpuparams.n_threads = given.threads
    params.cpuparams_batch.n_threads = given.threads
    began = time.monotonic()
    server = xllamacpp.Server(params)
    load = time.monotonic() - began
    answer = server.handle_completions(
        {
            "prompt": [int(token) for token in given.tokens.split(",")],
            "n_predict": given.n,
            "temperature": 0,
            "ignore_eos": True,
            "cache_prompt": False,
        }
    )
    timings = answer["timings"]
    run = {
        "prefill_ms": timings["prompt_ms"],
        "decode_ms": timings["predicted_ms"],
        "n_prompt": timings["prompt_n"],
        "n_gen": timings["predicted_n"],
    }
    json.dump({"load_ms": 1000 * load, "runs": [run]}, sys.stdout)
    print()


main()
