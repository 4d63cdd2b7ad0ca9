"""Load on `mzseek serve`: latency with many requests in flight, throughput, memory.

Starts a server on loopback, sends single-spectrum requests from threads, and compares with a loop
over the same spectra in this process. CPU times are given beside wall times, since they depend less
on what else the machine does. Linux only (/proc).

    python benchmarks/serve_load.py --requests 600 --in-flight 200 --workers 2 --memory 2000
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from importlib.resources import files
from pathlib import Path
from threading import local
from urllib.parse import urlsplit

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_held = local()


def spectra() -> list[str]:
    """Return the texts of measured spectra that come with mzseek, one a request."""
    text = (files("mzseek.data") / "demo" / "measured.mgf").read_text("utf-8")
    return [f"{part}END IONS\n" for part in text.split("END IONS\n") if "BEGIN IONS" in part]


def family(process: int) -> list[int]:
    """Return a process and its children."""
    children = Path(f"/proc/{process}/task/{process}/children").parent.parent.glob("*/children")
    found = {int(word) for path in children for word in path.read_text().split()}
    return [process, *sorted(found)]


def cpu_seconds(processes: list[int]) -> float:
    """Return the CPU time that processes have taken."""
    total = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def megabytes(processes: list[int]) -> float:
    """Return the resident memory of processes."""
    pages = (int(Path(f"/proc/{p}/statm").read_text().split()[1]) for p in processes)
    return sum(pages) * _PAGE / 1e6


def sender(address: str) -> Callable[[str], tuple[float, int]]:
    """Return a function that annotates a spectrum: seconds and status."""
    host = urlsplit(address).netloc

    def send(text: str) -> tuple[float, int]:
        if not hasattr(_held, "connection"):
            _held.connection = HTTPConnection(host, timeout=300)
        body = json.dumps({"text": text})
        began = time.perf_counter()
        _held.connection.request(
            "POST", "/api/v1/annotate", body, {"Content-Type": "application/json"}
        )
        response = _held.connection.getresponse()
        response.read()
        return time.perf_counter() - began, response.status

    return send


def wait_until_ready(address: str, workers: int) -> None:
    """Return when all workers have opened the model."""
    connection = HTTPConnection(urlsplit(address).netloc, timeout=60)
    while True:
        connection.request("GET", "/health")
        if json.loads(connection.getresponse().read())["workers"] == workers:
            return
        time.sleep(0.2)


def loop(texts: list[str]) -> tuple[float, float]:
    """Return wall and CPU seconds a spectrum of the same work without a server."""
    from mzseek.annotation.annotator import Annotator
    from mzseek.annotation.config import AnnotateConfig
    from mzseek.annotation.reading import SpectrumFiles
    from mzseek.export.writer import IN_FULL
    from mzseek.web.tasks import described

    annotator = Annotator(AnnotateConfig(explain=IN_FULL))
    wall = cpu = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "spectrum.mgf")
        for number, text in enumerate([*texts[:20], *texts]):
            path.write_text(text)
            before = time.perf_counter(), time.process_time()
            json.dumps([described(annotation) for annotation in annotator.run(SpectrumFiles(path))])
            if number >= 20:  # by then all kernels are loaded
                wall += time.perf_counter() - before[0]
                cpu += time.process_time() - before[1]
    return wall / len(texts), cpu / len(texts)


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=600)
    parser.add_argument("--in-flight", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", type=int, default=2_000, help="requests that memory is watched")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    texts = spectra()
    every = [texts[at % len(texts)] for at in range(options.requests)]
    loop_wall, loop_cpu = loop(every[:200])
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "mzseek", "serve", "--port", "0", "--data-dir", folder,
                   "--workers", str(options.workers)]  # fmt: skip
        began = time.perf_counter()
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert server.stdout is not None
        address = server.stdout.readline().decode().split()[3]
        printed = time.perf_counter() - began
        try:
            wait_until_ready(address, options.workers)
            ready = time.perf_counter() - began
            processes, send = family(server.pid), sender(address)
            with ThreadPoolExecutor(options.in_flight) as pool:
                list(pool.map(send, every[:50]))
                before = time.perf_counter(), cpu_seconds(processes)
                answers = list(pool.map(send, every))
                wall, cpu = time.perf_counter() - before[0], cpu_seconds(processes) - before[1]
                memory = [megabytes(processes)]
                for _ in range(4):
                    quarter = options.memory // 4
                    list(pool.map(send, (texts[at % len(texts)] for at in range(quarter))))
                    memory.append(megabytes(processes))
        finally:
            server.kill()
            server.wait()
    seconds = sorted(answer[0] for answer in answers)
    print(json.dumps({
        "load_of_the_machine": [round(value, 1) for value in os.getloadavg()],
        "seconds_until_url": round(printed, 2),
        "seconds_until_ready": round(ready, 1),
        "requests": len(answers),
        "lost": sum(answer[1] != 200 for answer in answers),
        "p50": round(seconds[len(seconds) // 2], 2),
        "p99": round(seconds[int(0.99 * len(seconds))], 2),
        "wall_ms_a_request": round(1e3 * wall / len(answers), 1),
        "cpu_ms_a_request": round(1e3 * cpu / len(answers), 1),
        "loop_wall_ms": round(1e3 * loop_wall, 1),
        "loop_cpu_ms": round(1e3 * loop_cpu, 1),
        "megabytes_over_requests": [round(value) for value in memory],
    }, indent=1))  # fmt: skip


if __name__ == "__main__":
    main()
