"""The page of a byte map: what is in it, that nothing in it acts, and how it answers in a real browser."""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

import gguf_schema as gs
from gguf_schema.annotate import at, entries, everything, leaves
from gguf_schema.cli import main
from gguf_schema.demo import demo_model
from gguf_schema.page import PART, map_html
from gguf_schema.terminal import printable
from tools.benchmarks.files import large_file

from .browser import CLICK_TIMES, OPEN_TIMES, chromium
from .shared import CORPUS, corpus_files, needs_corpus
from .test_map import odd_file

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "<!--<script>",
    "]]>&lt;&amp;\"'",
    "one\ntwo\r\u2028three\u2029",
    "\x00\x07\x1b[2J\x7f\x9b",
    "\u202etxt.exe\u2066",
    "${alert(1)}$policy$$",
    "__proto__",
]
NO_UTF8 = b"\xff\xfe\xed\xa0\x80"


def hostile_file():
    pairs = [{"key": text, "value_type": 8, "value": text} for text in HOSTILE]
    pairs += [{"key": NO_UTF8, "value_type": 8, "value": NO_UTF8}]
    infos = [{"name": text, "dimensions": [8], "type": 0} for text in HOSTILE]
    return gs.GGUF.build({"metadata_kv": pairs, "tensor_infos": infos, "tensor_data": bytes(32 * len(infos))})


def bare_file():
    return gs.GGUF.build({"metadata_kv": [], "tensor_infos": []})


def page_of(source, enter=None, name="model.gguf"):
    with gs.open(source, check=False) as model:
        model.name = name
        return map_html(model, entries(model, enter) if enter else entries(model))


class Parsed(HTMLParser):
    """The elements of a page with their attributes, and the texts of some."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.texts = [], {}
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        kind = self.elements[-1][1].get("type", "") if self.elements else ""
        key = self.elements[-1][0] + kind if self.elements else ""
        self.texts[key] = self.texts.get(key, "") + data


def contents_of(page):
    return json.loads(Parsed(page).texts["scriptapplication/json"])


def column(contents, name):
    return [contents[name]["texts"][number] for number in contents[name]["of"]]


def unpacked(contents):
    """The entries of a page: path, start, end, type, value, doc, whether it is a leaf."""
    names = column(contents, "names")
    paths, starts, cursor = [], [], 0
    parents = [index - distance for index, distance in enumerate(contents["up"])]
    for index, (name, parent) in enumerate(zip(names, parents, strict=True)):
        paths.append(name if parent < 0 else f"{paths[parent]}{'' if name.startswith('[') else '.'}{name}")
        starts.append(cursor)
        cursor += contents["sizes"][index] if index not in parents else 0
    ends = [start + size for start, size in zip(starts, contents["sizes"], strict=True)]
    others = (column(contents, name) for name in ("types", "values", "docs"))
    return list(zip(paths, starts, ends, *others, strict=True))


# What is in it.


@pytest.mark.parametrize("enter", [None, everything], ids=["folded", "all"])
@pytest.mark.parametrize("data", [demo_model(), odd_file(), hostile_file()], ids=["demo", "odd", "hostile"])
def test_the_entries_can_be_had_back(data, enter):
    model = gs.open(data, check=False)
    mapped = entries(model, enter) if enter else entries(model)
    found = unpacked(contents_of(page_of(data, enter)))
    assert [entry[:4] for entry in found] == [(e.path, e.start, e.end, e.type) for e in mapped]
    assert [entry[5] for entry in found] == [entry.doc for entry in mapped]


@pytest.mark.parametrize("path", corpus_files(), ids=lambda path: path.stem)
def test_the_entries_of_the_corpus_can_be_had_back(path):
    with gs.open(path, shards=False) as model:
        mapped = entries(model)
        found = unpacked(contents_of(map_html(model, mapped)))
    assert [entry[:3] for entry in found] == [entry[:3] for entry in mapped]


def test_values_are_shown():
    values = {path: value for path, _, _, _, value, _ in unpacked(contents_of(page_of(demo_model())))}
    assert values["version"] == "3"
    assert values["metadata_kv[0].key"] == "general.architecture"
    assert values["metadata_kv[2].value_type"] == "UINT32"
    assert values["tensor_data[0]"] == "token_embd.weight"


def test_bytes_are_those_of_the_file():
    data = demo_model()
    contents = contents_of(page_of(data))
    for start, text in contents["bytes"]:
        piece = base64.b64decode(text)
        assert data[start : start + len(piece)] == piece
    start_of_data = gs.open(data).data_offset
    assert [(start, len(base64.b64decode(text))) for start, text in contents["bytes"]] == [(0, start_of_data)]


def test_of_long_leaves_start_and_end_are_there(tmp_path):
    path = tmp_path / "long.gguf"
    gs.write(path, {"a": "x" * (2 * PART), "b": "x" * (2 * PART + 1), "c": [0.5] * (1 << 20)})
    with gs.open(path) as model:
        mapped = {entry.path: entry for entry in leaves(model)}
    whole, cut, array = (mapped[f"metadata_kv[{n}].value.{name}"] for n, name in enumerate(["string"] * 2 + ["array"]))
    size = path.stat().st_size
    held = set()
    for start, text in contents_of(page_of(path))["bytes"]:
        held |= set(range(start, start + len(base64.b64decode(text))))
    missing = {*range(cut.start + PART, cut.end - PART), *range(array.start + PART, array.end - PART)}
    assert held == set(range(size)) - missing
    assert whole.end - whole.start == 2 * PART


def test_long_values_are_cut(tmp_path):
    gs.write(tmp_path / "long.gguf", {"a": "\x1b" * 1_000_000})
    page = page_of(tmp_path / "long.gguf")
    assert len(page) < 100_000
    longest = max(contents_of(page)["values"]["texts"], key=len)
    assert longest == ("\\x1b" * 1_000_000)[:2000] + "…"


def test_tensor_data_is_neither_read_nor_in_the_page(tmp_path, reads):
    path = large_file(tmp_path / "large.gguf")
    assert path.stat().st_size > 19 << 30
    page = page_of(path)
    assert 0 < max(position + size for position, size in reads) < 1 << 20
    assert 100_000 < len(page) < 1_000_000
    assert contents_of(page)["size"] == path.stat().st_size


@needs_corpus
def test_a_vocabulary_makes_a_small_page():
    assert len(page_of(CORPUS / "ggml-vocab-llama-bpe.gguf")) < 200_000


def test_a_file_that_shrinks(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(demo_model())
    with gs.open(path) as model:
        mapped = entries(model)
        os.truncate(path, 4000)
        with pytest.raises(gs.GGUFError, match="has changed"):
            map_html(model, mapped)


# Nothing in it acts.


@pytest.mark.parametrize("data", [demo_model(), hostile_file()], ids=["demo", "hostile"])
def test_the_page_reaches_nothing(data):
    page = page_of(data)
    parsed = Parsed(page)
    assert page.isascii()
    assert not re.search(r"https?:|\burl\(|@import|\bimport\b", page.replace("\\u", ""))
    attributes = {name for _, attrs in parsed.elements for name in attrs}
    assert not attributes & {"src", "href", "style", "srcset", "action", "data"}
    assert not [name for name in attributes if name.startswith("on")]
    assert [attrs for tag, attrs in parsed.elements if tag == "script"] == [
        {"type": "application/json", "id": "contents"},
        {},
    ]


def test_the_policy_allows_this_script_and_style_only():
    page = page_of(demo_model())
    (policy,) = (attrs["content"] for _, attrs in Parsed(page).elements if "http-equiv" in attrs)

    def hash_of(tag):
        text = re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL).group(1)
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert dict(directive.split(maxsplit=1) for directive in policy.split("; ")) == {
        "default-src": "'none'",
        "script-src": hash_of("script"),
        "style-src": hash_of("style"),
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
    }


def test_the_script_writes_text_only():
    script = Parsed(page_of(demo_model())).texts["script"]
    assert script.count("textContent") > 3
    for word in ("HTML", "document.write", "eval", "Function(", "fetch", "XMLHttp", "createContextual", "<!--"):
        assert word not in script


def test_hostile_text_is_text():
    page = page_of(hostile_file(), name="<script>alert(1)<!--\udcff\u202e&amp;.gguf")
    assert page.encode()
    plain = Parsed(page_of(demo_model()))
    parsed = Parsed(page)
    assert [tag for tag, _ in parsed.elements] == [tag for tag, _ in plain.elements]
    contents = contents_of(page)
    for text in [*HOSTILE, NO_UTF8.decode("utf-8", "surrogateescape")]:
        assert printable(text) in contents["values"]["texts"]
    assert all(text.isprintable() for text in contents["values"]["texts"])
    inside = page[page.index('id="contents">') + len('id="contents">') : page.index("</script>")]
    assert not set(inside) & set("<>&\u2028\u2029")
    assert parsed.texts["title"].startswith("<script>alert(1)<!--\\udcff\\u202e&amp;.gguf, byte map")


# The command.


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "demo.gguf"
    path.write_bytes(demo_model())
    return path


def test_the_page_is_written_and_said_so(path, tmp_path, capsys):
    out = tmp_path / "out.html"
    assert main(["map", str(path), "--html", str(out)]) == 0
    stdout, stderr = capsys.readouterr()
    assert stdout == ""
    assert stderr.splitlines() == [f"gguf-schema: {path}: the page is {out}, {out.stat().st_size} bytes"]
    assert out.read_text() == page_of(path, name="demo.gguf")
    assert main(["map", str(path), "--html", "-"]) == 0
    stdout, stderr = capsys.readouterr()
    assert (stdout, stderr) == (out.read_text() + "\n", "")
    assert main(["map", str(path), "--all", "--html", str(out)]) == 0
    assert len(contents_of(out.read_text())["sizes"]) > 1000
    assert main(["map", "--html", str(out)]) == 0
    assert contents_of(out.read_text())["file"] == "<demo>"


def test_an_old_page_stays_whole_when_writing_fails(path, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out.html"
    out.write_text("<!doctype html>old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert main(["map", str(path), "--html", str(out)]) == 2
    assert f"cannot write {out}: No space left on device" in capsys.readouterr().err
    assert out.read_text() == "<!doctype html>old"
    assert sorted(os.listdir(tmp_path)) == ["demo.gguf", "out.html"]


def test_no_model_is_overwritten(path, tmp_path, capsys):
    link = tmp_path / "link.html"
    link.symlink_to(path)
    for out in path, link:
        for arguments in [str(path)], []:  # without FILE, OUT would be the file that was meant
            assert main(["map", *arguments, "--html", str(out)]) == 2
            assert f"{out} is there, and is no page; it is not overwritten" in capsys.readouterr().err
    command = [sys.executable, "-m", "gguf_schema", "map", "-", "--html", str(path)]
    with open(path, "rb") as model:
        run = subprocess.run(command, stdin=model, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "is there, and is no page; it is not overwritten" in run.stderr
    assert path.read_bytes() == demo_model()


def test_only_pages_are_overwritten(path, tmp_path, capsys):
    out = tmp_path / "out"
    for there, status in ((b"", 0), (b"GGU", 2), (b"GGJT of 4 GB", 2), (b"<!doctype html>\nold", 0), (b"notes", 2)):
        out.write_bytes(there)
        assert main(["map", str(path), "--html", str(out)]) == status
        assert out.read_bytes().startswith(b"<!doctype html>" if status == 0 else there)


@pytest.mark.parametrize("out", ["", "nothing/out.html", "."])
def test_a_page_that_cannot_be_written(path, tmp_path, out, capsys):
    assert main(["map", str(path), "--html", str(tmp_path / out) if out else ""]) == 2
    stdout, stderr = capsys.readouterr()
    assert stdout == ""
    assert "cannot write" in stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize("other", [["--json"], ["--hex"], ["--depth", "0"], ["--at", "0"], ["--where", "magic"]])
def test_html_goes_with_all_only(path, tmp_path, other, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["map", str(path), "--html", str(tmp_path / "out.html"), *other])
    assert caught.value.code == 2
    assert "--html" in capsys.readouterr().err
    assert not (tmp_path / "out.html").exists()


# In a browser.


@pytest.fixture(scope="module")
def browser():
    try:
        with chromium() as started:
            yield started
    except ImportError as error:
        pytest.skip(f"could not import a browser: {error}")


@pytest.fixture
def visit(browser, tmp_path):
    """Opens the page of a file; at the end, nothing must have been asked for or complained of."""
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    context.set_default_timeout(60_000)
    noted = []

    def opened(html):
        file = tmp_path / "page.html"
        file.write_text(html, encoding="utf-8")
        page = context.new_page()
        page.on("request", lambda request: request.url == file.as_uri() or noted.append(request.url))
        page.on("console", lambda message: noted.append(message.text))
        page.on("pageerror", lambda error: noted.append(str(error)))
        page.on("dialog", lambda dialog: (noted.append(dialog.message), dialog.dismiss()))
        page.goto(file.as_uri())
        return page

    yield opened
    context.close()
    assert noted == []


def detail(page, name):
    return page.locator(f"#details dd.{name}").text_content()


def selected_offsets(page):
    return page.locator(".bytes .selected").evaluate_all("(bytes) => bytes.map((byte) => Number(byte.dataset.offset))")


def test_a_click_on_a_byte_selects_its_field(visit):
    page = visit(page_of(demo_model()))
    model = gs.open(demo_model())
    assert detail(page, "path") == "magic"
    for offset in 5, 30, 33, 54, 56, 66, 100, 150:
        for part in "bytes", "letters":
            page.locator(f".{part} [data-offset='{offset}']").click()
            leaf = at(model, offset)[-1]
            assert detail(page, "path") == leaf.path
            assert detail(page, "type") == leaf.type
            assert detail(page, "start").split()[0] == f"{leaf.start:,}"
            assert detail(page, "end").split()[0] == f"{leaf.end:,}"
            assert detail(page, "meaning") == leaf.doc
            assert selected_offsets(page) == list(range(leaf.start, leaf.end))
            row = page.locator("#tree [aria-selected=true]")
            assert row.count() == 1
            assert page.locator("#tree").get_attribute("aria-activedescendant") == row.get_attribute("id")
            (piece,) = page.locator("#bar .selected").all()
            assert piece.locator("b").text_content() == re.split(r"[.\[]", leaf.path)[0]


def test_a_click_on_a_field_highlights_its_bytes(visit):
    page = visit(page_of(demo_model()))
    model = gs.open(demo_model())
    pair = next(entry for entry in entries(model) if entry.path == "metadata_kv[16]")
    page.locator("#tree .row", has_text="tokenizer.ggml.bos_token_id").click()
    assert detail(page, "path") == pair.path
    assert detail(page, "name") == "tokenizer.ggml.bos_token_id"
    assert selected_offsets(page) == list(range(pair.start, pair.end))
    box, byte = page.locator("#hex").bounding_box(), page.locator(f".bytes [data-offset='{pair.start}']").bounding_box()
    assert box["y"] <= byte["y"] < box["y"] + box["height"]


def test_the_page_finds_the_leaf_of_every_byte(visit):
    """The same answers as `annotate.at` for the fields, and as `annotate.leaves` also inside of arrays."""
    model = gs.open(demo_model())
    page = visit(page_of(demo_model(), everything))
    ask = "(offsets) => offsets.map((offset) => pathOf(leafAt(offset)))"
    mapped = [leaf for leaf in leaves(model, everything) if leaf.end > leaf.start]
    for place in (lambda leaf: leaf.start), (lambda leaf: leaf.end - 1):
        assert page.evaluate(ask, list(map(place, mapped))) == [leaf.path for leaf in mapped]
    offsets = [leaf.start for leaf in leaves(model) if leaf.end > leaf.start and leaf.start < model.infos_end]
    assert len(offsets) > 100
    assert page.evaluate(ask, offsets) == [at(model, offset)[-1].path for offset in offsets]
    assert page.evaluate("[leafAt(-1), leafAt(contents.size)]") == [-1, -1]


def test_every_byte_of_the_page_is_shown(visit):
    """Scrolling through the hex view meets each byte once, and says how many are left out."""
    data = odd_file()
    page = visit(page_of(data))
    bytes = page.locator(".bytes [data-offset]")
    shown = bytes.evaluate_all("(bytes) => bytes.map((byte) => [byte.dataset.offset, byte.textContent])")
    start = gs.open(data).data_offset
    there = [*range(start), *range(len(data) - 4, len(data))]
    assert [(int(offset), int(byte, 16)) for offset, byte in shown] == [(offset, data[offset]) for offset in there]
    notes = page.locator(".note").all_text_contents()
    assert sum(int(re.search(r": (\d+) bytes", note).group(1)) for note in notes) == len(data) - len(there)
    assert "early: 40 bytes, left out of this page" in notes
    page.locator(".gap", has_text="early").click()
    assert detail(page, "path") == "tensor_data[1]"


def test_keys_walk_the_tree_and_the_bytes(visit):
    page = visit(page_of(demo_model()))

    def press(box, *keys):
        for key in keys:
            page.locator(box).press(key)
        return detail(page, "path")

    assert press("#tree", "ArrowDown") == "version"
    assert press("#tree", *["ArrowDown"] * 4) == "metadata_kv[0]"
    assert press("#tree", "ArrowRight") == "metadata_kv[0]"
    assert page.locator("#tree [aria-selected=true]").get_attribute("aria-expanded") == "true"
    assert press("#tree", "ArrowRight", "ArrowDown") == "metadata_kv[0].value_type"
    assert press("#tree", "ArrowLeft") == "metadata_kv[0]"
    assert press("#tree", "ArrowLeft") == "metadata_kv[0]"
    assert page.locator("#tree [aria-selected=true]").get_attribute("aria-expanded") == "false"
    assert press("#tree", "ArrowUp") == "metadata_kv"
    assert press("#tree", "End") == "tensor_data"
    assert press("#tree", "Home", "ArrowUp") == "magic"
    assert press("#hex", *["ArrowRight"] * 4) == "version"
    assert press("#hex", "ArrowDown") == "metadata_kv_count"
    assert press("#hex", "ArrowLeft", "ArrowUp") == "magic"


def test_search_goes_through_names_and_paths(visit):
    page = visit(page_of(demo_model()))
    query = page.locator("#query")
    query.fill("BLK.0.attn_q")
    assert (detail(page, "path"), page.locator("#found").text_content()) == ("tensor_infos[1]", "1 of 2")
    query.press("Enter")
    assert (detail(page, "path"), page.locator("#found").text_content()) == ("tensor_data[1]", "2 of 2")
    query.press("Enter")
    assert detail(page, "path") == "tensor_infos[1]"
    query.press("Shift+Enter")
    assert detail(page, "path") == "tensor_data[1]"
    query.fill("metadata_kv[13].value.len")
    assert detail(page, "path") == "metadata_kv[13].value.len"
    query.fill("nowhere")
    assert page.locator("#found").text_content() == "0 of 0"


def test_search_goes_to_an_offset(visit):
    page = visit(page_of(demo_model()))
    query = page.locator("#query")
    for text, path in (("33", "metadata_kv[0].key.string"), ("0x10", "metadata_kv_count"), ("0", "magic")):
        query.fill(text)
        assert (detail(page, "path"), page.locator("#found").text_content()) == (path, "1 of 1")
    query.fill("99999999")
    assert page.locator("#found").text_content() == "0 of 0"


def test_the_bar_zooms_in_and_out(visit, tmp_path):
    page = visit(page_of(large_file(tmp_path / "large.gguf")))
    pieces = page.locator("#bar .piece")
    crumbs = page.locator("#crumbs button")

    def named(text):
        return page.locator("#bar .piece").filter(has=page.locator("b", has_text=re.compile(f"^{text}$")))

    assert [text.split(",")[0] for text in pieces.evaluate_all("(all) => all.map((piece) => piece.ariaLabel)")] == [
        *("magic", "version", "tensor_count", "metadata_kv_count", "metadata_kv", "tensor_infos"),
        *(["padding"] if pieces.count() == 8 else []),
        "tensor_data",
    ]
    assert min(pieces.evaluate_all("(all) => all.map((piece) => piece.getBoundingClientRect().width)")) >= 8
    named("version").click()
    assert detail(page, "path") == "version"
    named("tensor_data").click()
    assert crumbs.all_text_contents() == ["Whole file", "tensor_data"]
    for depth in 3, 4:
        assert 5 < pieces.count() <= 48
        pieces.nth(3).click()
        assert crumbs.count() == depth
    pieces.nth(3).click()
    assert detail(page, "path").startswith("tensor_data[")
    assert crumbs.count() == 4
    page.keyboard.press("Escape")
    assert crumbs.count() == 3
    crumbs.first.click()
    assert crumbs.all_text_contents() == ["Whole file"]
    named("metadata_kv").hover()
    page.mouse.wheel(0, -100)
    page.locator("#crumbs", has_text="metadata_kv").wait_for()
    page.wait_for_timeout(300)
    page.mouse.wheel(0, 100)
    page.locator("#crumbs button:only-child").wait_for()
    assert page.locator("#scale span").last.text_content() == f"{(tmp_path / 'large.gguf').stat().st_size:,}"


def test_hostile_text_does_nothing(visit):
    page = visit(page_of(hostile_file(), name="<img src=x onerror=window.hacked=1>"))
    page.locator("#tree").press("End")
    for text in HOSTILE:
        page.locator("#query").fill(printable(text).strip())
        page.locator("#query").press("Enter")
        assert detail(page, "name") == printable(text)
        page.locator("#tree").press("ArrowRight")
    for name in "metadata_kv", "tensor_infos", "tensor_data":
        page.locator("#crumbs button").first.click() if page.locator("#crumbs button").count() > 1 else None
        page.locator("#bar .piece").filter(has=page.locator("b", has_text=re.compile(f"^{name}$"))).click()
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert page.title() == "<img src=x onerror=window.hacked=1>, byte map"
    assert page.locator("h1").text_content() == "<img src=x onerror=window.hacked=1>"
    tags = page.locator("body *").evaluate_all("(all) => all.map((element) => element.localName)")
    assert set(tags) <= {
        *("b", "button", "dd", "div", "dl", "dt", "form", "h1", "header", "i", "input", "main", "nav", "noscript"),
        *("output", "p", "script", "section", "span"),
    }
    assert page.locator("script").count() == 2


def test_the_policy_stops_what_would_get_in(browser, tmp_path):
    """A script, a style and a picture that somehow got into the page do nothing."""
    bad = '<script>window.hacked = 1</script><img src="http://127.0.0.1:9/x" onerror="window.hacked = 2">'
    file = tmp_path / "injected.html"
    file.write_text(page_of(demo_model()).replace("<noscript>", bad + "<noscript>"))
    page = browser.new_page()
    failed = []
    page.on("requestfailed", lambda request: failed.append((request.url, request.failure)))
    page.goto(file.as_uri())
    page.wait_for_timeout(200)
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert failed == [("http://127.0.0.1:9/x", "csp")]
    with pytest.raises(Exception, match="TrustedHTML"):
        page.evaluate("() => { document.body.innerHTML = '<b>x</b>'; }")
    page.close()


def test_many_tensors_open_and_answer(visit, tmp_path):
    """Whatever the number of fields, few are in the document. Times are printed, not judged."""
    page = visit(page_of(large_file(tmp_path / "large.gguf")))
    opened, painted = page.evaluate(OPEN_TIMES)
    times = {}
    for name, selector in {
        "byte": ".bytes [data-offset='30']",
        "tensor_data in the bar": "#bar .piece:last-child",
        "arrow of tensor_data": "#tree .row:last-child .arrow",
    }.items():
        times[name] = page.evaluate(CLICK_TIMES, selector)
    print(f"interactive after {opened:.0f} ms, painted after {painted:.0f} ms")
    for name, (handled, seen) in times.items():
        print(f"click on {name}: handled in {handled:.1f} ms, painted within {seen:.1f} ms")
    assert page.locator("*").count() < 4000
    page.locator("#query").fill("blk.222.ffn_1.weight")
    assert detail(page, "path") == "tensor_data[1999]"
    assert page.locator("#tree [aria-selected=true] .name").text_content() == "blk.222.ffn_1.weight"
    assert page.locator("#hex .gap.selected").count() == 1


def test_lists_too_tall_for_a_browser(visit):
    """Where rows are more than pixels allow, scrolling skips some, but every row can be reached."""
    pair = {"key": "a", "value_type": 9, "value": {"type": 0, "array": np.arange(200_000) % 251}}
    data = gs.GGUF.build({"metadata_kv": [pair], "tensor_infos": []})
    page = visit(page_of(data, everything))
    assert page.evaluate("200_000 * ROW > TALLEST")
    for index in 199_999, 100_000, 3:
        page.locator("#query").fill(f"array[{index}]")
        assert detail(page, "path") == f"metadata_kv[0].value.array[{index}]"
        box = page.locator("#tree").bounding_box()
        row = page.locator("#tree [aria-selected=true]").bounding_box()
        assert box["y"] <= row["y"] <= box["y"] + box["height"] - row["height"]
    page.locator("#tree").press("End")
    assert detail(page, "path") == "tensor_infos"
    row = page.locator("#tree [aria-selected=true]").bounding_box()
    assert row["y"] + row["height"] <= box["y"] + box["height"] + 1


@pytest.mark.parametrize("data", [odd_file(), bare_file()], ids=["odd", "bare"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_small_files_and_schemes(visit, scheme, data):
    page = visit(page_of(data))
    page.emulate_media(color_scheme=scheme)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground))) > 384) is (scheme == "light")
    page.locator("#tree").press("End")
    assert detail(page, "end").split()[0] == f"{len(data):,}"
