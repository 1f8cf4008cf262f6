"""Many tabs at once: fifty loads of the widest step, none of which fails."""

from __future__ import annotations

import http.client
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

LOADS = 50
LONGEST = 120.0  # seconds; bounds a hang


def asked(place: str, path: str, cookie: str = "", method: str = "GET", body: str = ""):
    connection = http.client.HTTPConnection(place, timeout=LONGEST)
    headers = {"Cookie": cookie, "Sec-Fetch-Site": "same-origin"} if cookie else {}
    if body:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    content = answer.read().decode()
    connection.close()
    return answer.status, content, answer.getheader("set-cookie") or ""


def test_fifty_loads_at_once_are_all_answered(serve):
    served = serve()
    parts = urlsplit(served.url)
    cookie = asked(parts.netloc, f"{parts.path}?{parts.query}")[2].partition(";")[0]
    assert asked(parts.netloc, "/open", cookie, "POST", "how=demo")[0] == 303
    end = time.monotonic() + LONGEST
    while "columns-table" not in asked(parts.netloc, "/columns", cookie)[1] and time.monotonic() < end:
        time.sleep(0.1)

    with ThreadPoolExecutor(LOADS) as tabs:
        answers = list(tabs.map(lambda _: asked(parts.netloc, "/columns", cookie), range(LOADS)))
    assert {status for status, _, _ in answers} == {200}
    assert len({content for _, content, _ in answers}) == 1
    assert "readmitted" in answers[0][1]
