#!/usr/bin/env python3
"""Serves the site on loopback, opens a page in a headless Chromium with the machine's GPU, and writes
the results: JSON, and Markdown beside it. Without `--page`, the page is the race on WebGPU.

Usage: drive.py SITE OUT.json [--page PATH] [--chromium PROGRAM] [--rounds N] [--only REGEX] [--timeout SECONDS]
"""

import argparse
import http.server
import json
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading
import urllib.parse

FLAGS = [
    "--headless=new", "--no-sandbox", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--enable-unsafe-webgpu",
    "--enable-features=Vulkan", "--use-vulkan=native", "--use-angle=vulkan",
    # Without it Chromium has no f16 on NVIDIA's GPUs.
    "--enable-dawn-features=vulkan_enable_f16_on_nvidia",
    "--ignore-gpu-blocklist", "--disable-vulkan-surface", "--remote-debugging-port=0",
]
HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def handler(site, results):
    class Handler(http.server.SimpleHTTPRequestHandler):
        extensions_map = {".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm",
                          ".json": "application/json"}

        def __init__(self, *args, **options):
            super().__init__(*args, directory=site, **options)

        def end_headers(self):
            for name, value in HEADERS.items():
                self.send_header(name, value)
            super().end_headers()

        def do_POST(self):
            results.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    return Handler


def results_of(options):
    results = queue.Queue()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(options.site, results))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    query = urllib.parse.urlencode({"rounds": options.rounds, "only": options.only, "to": "result"})
    join = "&" if "?" in options.page else "?"
    url = f"http://127.0.0.1:{server.server_port}/{options.page}{join}{query}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, tempfile.TemporaryFile() as log:
        command = [options.chromium, *FLAGS, f"--user-data-dir={profile}", url]
        browser = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            return results.get(timeout=options.timeout)
        except queue.Empty:
            log.seek(0)
            sys.exit("no result in time; the browser said:\n" + log.read().decode(errors="replace")[-3000:])
        finally:
            browser.kill()
            browser.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--page", default="webgpu.html")
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--rounds", default="9")
    parser.add_argument("--only", default="")
    parser.add_argument("--timeout", type=float, default=300)
    options = parser.parse_args()
    result = results_of(options)
    options.out.write_text(json.dumps(result, indent=1))
    if "failure" in result:
        sys.exit(result["failure"])
    markdown = result.get("markdown") or json.dumps(result)
    options.out.with_suffix(".md").write_text(markdown)
    print(markdown)


main()
