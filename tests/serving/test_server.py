"""`plant serve`: JSON over HTTP and the page, on a real socket; what it refuses, and that it stays up."""

import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import uvicorn

from plant.commandline import main
from plant.serving import server
from plant.serving.inputs import Document
from plant.serving.predict import predictions
from plant.serving.system import SavedSystem, load_system

TEXT = "Sign1 word3 😀 <b>Sign2</b> & word4"


@contextlib.contextmanager
def running(model: SavedSystem, **limits: float) -> Iterator[str]:
    """The address of a server in a thread of this process."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(server.build_app(model, server.Limits(**limits)), log_level="warning", access_log=False)
    answering = uvicorn.Server(config)
    thread = threading.Thread(target=answering.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        answering.should_exit = True
        thread.join(30)


@pytest.fixture(scope="module")
def model(saved) -> SavedSystem:
    return load_system(saved("evidence"))


@pytest.fixture(scope="module")
def address(model) -> Iterator[str]:
    with running(model, documents=5, megabytes=2, body_seconds=2) as url:
        yield url


def post(url: str, body: object, kind: str = "application/json") -> tuple[int, dict]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"{url}/predict", data, {"Content-Type": kind})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_one_text_and_a_batch_get_what_predict_gives(model, address):
    documents = [Document("a", TEXT), Document("b", "word7 Sign5")]
    expected = [one.as_dict() for one in predictions(model, documents, reasons=5)]
    status, found = post(address, {"documents": [one._asdict() for one in documents]})
    assert (status, found["documents"]) == (200, json.loads(json.dumps(expected)))
    status, found = post(address, {"text": "word7 Sign5", "top": 2, "reasons": 0, "with_text": True})
    (one,) = found["documents"]
    assert (status, one["id"], one["text"], len(one["labels"])) == (200, "1", "word7 Sign5", 2)
    assert one["labels"][0]["reasons"] == []
    status, found = post(address, {"text": "word7", "labels": ["L3", "L1"]})
    assert (status, {label["label"] for label in found["documents"][0]["labels"]}) == (200, {"L1", "L3"})
    status, found = post(address, {"text": TEXT, "rule": "micro", "top": 1})
    (first,) = found["documents"][0]["labels"]
    assert (status, first["threshold"]) == (200, model.thresholds["micro"]["value"])
    status, found = post(address, {"text": TEXT, "rule": "mikro"})
    assert (status, found["error"]["fix"]) == (422, "Did you mean 'micro'?")


BAD = {
    "no JSON": (b"{", 422, "body: expected the keys of POST /predict, got Invalid JSON"),
    "a list": ([], 422, "body: .*Input should be an object"),
    "no text": ({}, 413, "documents: expected 1 to 5, got 0"),
    "an empty text": ({"text": " "}, 422, "document 1: expected 1 to 1,000,000 characters, got 0"),
    "a text that is too long": ({"text": "x" * 1_000_001}, 422, "document 1: expected 1 to 1,000,000 characters"),
    "more than fits": ({"text": "x" * 2_000_001}, 413, "body: expected at most 2,000,000 bytes"),
    "100,000 documents": ({"documents": [{"text": "a"}] * 100_000}, 413, "documents: expected 1 to 5, got 100,000"),
    "a document that is none": ({"documents": ["secret"]}, 422, "documents.0: .*Input should be an object"),
    "a number as text": ({"text": 5}, 422, "text: .*valid string"),
    "half a character": (b'{"text": "\\ud83d"}', 422, "Invalid JSON"),
    "an unknown key": ({"text": "a", "secretive": 1}, 422, "Extra inputs are not permitted"),
    "an unknown label": ({"text": "a", "labels": ["L99"]}, 422, "one of the 9 labels .* Known: L0, L1"),
    "true as a number": ({"text": "a", "reasons": True}, 422, "reasons: .*valid integer"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_wrong_request_gets_one_error_and_the_server_stays_up(address, what):
    body, status, expected = BAD[what]
    found, answer = post(address, body)
    assert found == status
    assert re.search(expected, "{where}: expected {expected}, got {got}. {fix}".format(**answer["error"]))
    assert "secret" not in json.dumps(answer).replace("secretive", "")
    assert post(address, {"text": "Sign1"})[0] == 200


def test_a_form_of_another_page_is_refused(address):
    assert post(address, {"text": "a"}, kind="text/plain")[0] == 415
    assert post(address, {"text": "a"}, kind="Application/JSON; charset=utf-8")[0] == 200  # capitals mean nothing


def test_a_client_that_is_too_slow_gets_an_error_and_its_place_is_free(address):
    host, port = address.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    connection.putrequest("POST", "/predict")
    for name, value in (("Content-Type", "application/json"), ("Content-Length", "1000")):
        connection.putheader(name, value)
    connection.endheaders(b'{"text": "a')
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["error"]["got"]) == (408, "a part")
    assert post(address, {"text": "Sign1"})[0] == 200


def test_an_error_of_the_model_is_answered_and_its_message_is_not_logged(model, address, monkeypatch, caplog):
    def broken(*_, **__):
        raise RuntimeError("secret words of the text")

    monkeypatch.setattr(server, "predictions", broken)
    status, answer = post(address, {"text": "a"})
    assert (status, answer["error"]["got"]) == (500, "RuntimeError")
    assert "predict failed: RuntimeError" in caplog.text
    assert "secret" not in caplog.text + json.dumps(answer)


def test_fifty_requests_at_once_get_the_same_answer(address):
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: post(address, {"text": TEXT}), range(200)))
    assert all(answer == answers[0] for answer in answers)
    assert answers[0][0] == 200


def test_requests_beyond_the_limit_get_503_and_neither_health_nor_an_idle_client_takes_a_place(model, monkeypatch):
    answering, go_on, answer = threading.Event(), threading.Event(), server.predictions

    def slow(*arguments, **options):
        answering.set()
        assert go_on.wait(60)
        return answer(*arguments, **options)

    with running(model, waiting=1) as url, ThreadPoolExecutor(1) as pool:
        idle = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
        idle.request("GET", "/health")
        assert idle.getresponse().read()  # and keeps its connection
        assert post(url, {"text": "Sign1"})[0] == 200
        monkeypatch.setattr(server, "predictions", slow)
        first = pool.submit(post, url, {"text": "Sign1"})
        assert answering.wait(60)
        status, refused = post(url, {"text": "Sign1"})
        assert (status, refused["error"]["expected"]) == (503, "at most 1 request(s) at once")
        assert urllib.request.urlopen(f"{url}/health").status == 200
        go_on.set()
        assert first.result()[0] == 200
        assert post(url, {"text": "Sign1"})[0] == 200
        idle.close()


def test_health_names_the_model_and_its_limits(address):
    with urllib.request.urlopen(f"{address}/health") as answer:
        facts = json.loads(answer.read())
    assert (facts["status"], facts["model"], facts["labels"]) == ("ok", "evidence", 9)
    assert facts["limits"] == {"documents": 5, "megabytes": 2, "waiting": 100, "body_seconds": 2}


def test_the_page_may_load_nothing_from_elsewhere(address):
    with urllib.request.urlopen(address) as answer:
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        page = answer.read().decode()
    assert not re.findall(r"(?:src|href)=\"(?!data:)", page)


def test_an_address_that_is_taken_is_one_line(saved, address):
    taken = address.rpartition(":")[2]
    with pytest.raises(SystemExit, match=r"^plant: .*expected a free address of this machine"):
        main(["serve", str(saved("mig_log_odds")), "--port", taken])


@pytest.mark.parametrize(("extra", "command"), [("serve", ["serve", "m"]), ("onnx", ["export", "m", "--onnx", "f"])])
def test_without_the_extra_the_command_says_what_to_install(monkeypatch, extra, command):
    monkeypatch.setattr("plant.commandline.find_spec", lambda _: None)
    with pytest.raises(SystemExit, match=rf"pip install '\.\[{extra}\]'"):
        main(command)


def test_the_command_listens_on_this_machine_alone_ends_in_order_and_logs_no_text(saved, tmp_path):
    command = [sys.executable, "-m", "plant.commandline", "serve", saved("mig_log_odds"), "--port", "0"]
    command += ["--waiting", "1"]  # enough for a client that asks one thing after the other
    process = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    line = process.stdout.readline()
    url = line.split()[0]
    assert url.startswith("http://127.0.0.1:")
    status, found = post(url, {"text": "Sign1 qzvxsecret"})
    assert (status, found["documents"][0]["labels"][0]["label"]) == (200, "L1")
    assert post(url, {"text": "qzvxsecret" * 200_000})[0] == 422
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=30)
    assert "qzvxsecret" not in line + out + errors
    assert "Traceback" not in errors


SAID = "document.getElementById('status').textContent"
ANSWERED = f"""new Promise((done) => {{
  const look = () => /threshold|expected/.test({SAID}) ? done() : setTimeout(look, 20);
  look();
}})"""


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_the_page_shows_labels_and_reasons_in_a_browser_without_an_error(browser, model, width):
    with running(model) as url:
        browser.open(url, width=width)
        browser.value(f"""document.getElementById("text").value = {json.dumps(TEXT)};
            document.getElementById("more").checked = true; document.getElementById("send").click()""")
        browser.value(ANSWERED)
    assert browser.errors == []
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert re.fullmatch(r"\d labels? (is|are) above the threshold\.", browser.value(SAID))
    assert browser.value("document.getElementById('labels').rows.length") == 9
    read = browser.value("document.getElementById('text-read').innerHTML")
    assert re.search(r"<mark[^>]*>Sign1</mark>", read)
    assert re.search(r"😀 &lt;b&gt;<mark[^>]*>Sign2</mark>&lt;/b&gt; &amp; ", read)


def test_the_page_is_used_by_keyboard_alone_and_says_its_result(browser, model):
    focus = "document.activeElement.id"
    with running(model) as url:
        browser.open(url, width=800)
        reached = []
        for _ in range(3):
            browser.press("Tab")
            reached.append(browser.value(focus))
            if reached[-1] == "text":
                browser.write("Sign1 word3")
        controls = browser.value(
            "[...document.querySelectorAll('textarea, button, input, a, select')].map((one) => one.id)"
        )
        assert reached == controls == ["text", "send", "more"]
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        assert browser.value(outline) == "solid"
        browser.press(" ")
        assert browser.value("document.getElementById('more').checked")
        browser.press("Enter")  # in a form this sends it
        browser.value(ANSWERED)
        assert browser.value("document.getElementById('labels').rows.length") == 9
    assert browser.value("document.getElementById('status').ariaLive") == "polite"
    assert browser.value("document.getElementById('status').role") == "status"
    assert re.fullmatch(r"\d labels? (is|are) above the threshold\.", browser.value(SAID))
    assert browser.errors == []
