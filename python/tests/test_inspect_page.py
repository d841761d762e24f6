"""The page of `tupelo inspect --html` in a real browser."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import builds
import chromium
import numpy as np
import pytest

import tupelo

DATA = Path(os.environ.get("TUPELO_DATA") or Path(__file__).parents[3] / "shared" / "data")
HOSTILE = "<img_src=x_onerror=alert(1)>"
TEXT = "</script><img src=x onerror=alert(1)><script>alert(2)</script><!--"
pytestmark = pytest.mark.skipif(chromium.PROGRAM is None, reason="Chromium is not installed (make servers)")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Chromium]:
    browser = chromium.Chromium(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """The page of a tree, and of an ntuple with 70 fields, including one with a hostile name."""
    values = np.arange(20_000, dtype="f4")
    data = {f"Muon_{number}": values * number for number in range(69)} | {HOSTILE: values}
    with tupelo.recreate("f.root", page_bytes=4096, cluster_bytes=400_000) as file:
        file.mkrntuple("Events", data, description=TEXT).close()
        file.mktree("Tree", {"x": values, "n": values.astype("i4")}).close()
    return inspect("f.root", tmp_path)


def inspect(file: str | Path, folder: Path) -> Path:
    page = folder / "report.html"
    subprocess.run([builds.built("tupelo"), "inspect", file, "--html", page, "--force", "--quiet"], check=True)
    return page


def test_nothing_leaves_the_page_and_names_stay_text(browser: chromium.Chromium, page: Path) -> None:
    browser.events.clear()
    browser.open(page)
    browser.run("new Promise((done) => setTimeout(done, 300))")
    assert browser.requests() == [page.as_uri()]
    assert browser.complaints() == []
    assert browser.run("document.images.length") == 0
    found = "const found = document.querySelector('#fields input');"
    browser.run(found + "found.value = 'img'; found.dispatchEvent(new Event('input'))")
    assert HOSTILE in browser.run("document.getElementById('fields').textContent")
    assert TEXT in browser.run("document.querySelector('header').textContent")
    # The policy refuses what a name could ask for.
    browser.run("fetch('https://example.org/').catch(() => 0)")
    assert any("Content Security Policy" in complaint for complaint in browser.complaints())


def test_tables_are_sorted_and_filtered_by_keyboard(browser: chromium.Chromium, page: Path) -> None:
    browser.open(page)
    head = "document.querySelector('#fields th:nth-child(1)')"
    first = "document.querySelector('#fields tbody tr th').textContent"
    assert browser.run("document.querySelector('#fields th[aria-sort]').textContent").startswith("Stored")
    browser.run(f"{head}.querySelector('button').focus()")
    browser.press("Enter")
    assert (browser.run(f"{head}.ariaSort"), browser.run(first)) == ("ascending", HOSTILE)
    browser.press("Enter")
    assert (browser.run(f"{head}.ariaSort"), browser.run(first)) == ("descending", "Muon_9")
    browser.run("document.querySelector('#fields input').focus()")
    for letter in "_42":
        browser.press(letter)
    rows = "[...document.querySelectorAll('#fields tbody tr th')].map((row) => row.textContent)"
    assert browser.run(rows) == ["Muon_42"]
    browser.events.clear()
    for pattern, expected in (
        ("muon_?", [f"Muon_{number}" for number in range(9, -1, -1)]),
        ("*_1*1", ["Muon_11"]),
        ("muon_{3[!1-9],5}", ["Muon_5", "Muon_30"]),
        ("muon_[6", []),
        ("uon_4*", []),
    ):
        filtered = f"input.value = {pattern!r}; input.dispatchEvent(new Event('input'))"
        browser.run(f"(() => {{ const input = document.querySelector('#fields input'); {filtered} }})()")
        assert browser.run(rows) == expected
    assert browser.complaints() == []


def test_attribute_sets_have_a_table(browser: chromium.Chromium, page: Path, tmp_path: Path) -> None:
    browser.open(page)
    assert browser.run("document.getElementById('sets')") is None
    with tupelo.recreate("sets.root") as file:
        file.mkrntuple("Events", {"x": np.arange(1000)}, zone_maps=True).close()
    browser.events.clear()
    browser.open(inspect("sets.root", tmp_path))
    assert browser.complaints() == []
    cells = browser.run("[...document.querySelector('#sets tbody tr').children].map((it) => it.textContent)")
    assert cells[:2] == ["zone_maps", "1"]


def test_the_map_of_fields_opens_by_keyboard(browser: chromium.Chromium, page: Path) -> None:
    browser.open(page)
    crumbs = "[...document.querySelectorAll('.crumbs button')].map((it) => it.textContent)"
    label = "document.activeElement.getAttribute('aria-label')"
    browser.run("document.querySelector('#treemap [tabindex=\"0\"]').focus()")
    assert browser.run(label).startswith("Muon_…: ")
    browser.press("Enter")
    assert browser.run(crumbs) == ["Events", "› Muon_"]
    before = browser.run(label)
    browser.press("ArrowRight")
    assert browser.run(label) != before
    assert "1 column" not in browser.run(label)
    assert browser.run("document.activeElement.matches('.cell:focus')")
    browser.press("Escape")
    assert browser.run(crumbs) == ["Events"]
    assert browser.run(label).startswith("Muon_…: ")


def test_the_byte_map_zooms_to_pages_by_keyboard(browser: chromium.Chromium, page: Path) -> None:
    browser.open(page)
    about = "document.getElementById('byte-about').textContent"
    assert browser.run(about).startswith("Bytes 0 to ")
    browser.run("document.getElementById('bytemap').focus()")
    browser.press("+", 3)
    zoomed = browser.run(about)
    assert zoomed.startswith("Bytes ")
    assert not zoomed.startswith("Bytes 0 to ")
    browser.press("Home")
    browser.press("ArrowRight", 2)
    browser.press("Enter")
    told = browser.run(about)
    assert "cluster 0, page 1: " in told
    assert "(SplitReal32)" in told
    browser.press("Escape")
    assert browser.run(about).startswith("Bytes 0 to ")


def test_another_object_is_chosen(browser: chromium.Chromium, page: Path) -> None:
    browser.open(page)
    browser.run("{const it = document.getElementById('picker'); it.value = 1; it.dispatchEvent(new Event('change'));}")
    assert browser.run("document.querySelector('h1').textContent") == "Tree"
    assert "TLeafF" in browser.run("document.getElementById('columns').textContent")


@pytest.mark.parametrize("media", [{}, {"prefers_color_scheme": "dark"}, {"forced_colors": "active"}], ids=str)
def test_a_narrow_window_does_not_scroll_sideways(
    browser: chromium.Chromium, page: Path, tmp_path: Path, media: dict[str, str]
) -> None:
    pages = [page]
    # One object, and several whose names are listed.
    for real, name in ("atlas_daod_physlite_ntuple.root", ":EventData"), ("atlas_daod_physlite_tree.root", ""):
        if (DATA / real).exists():
            folder = tmp_path / real
            folder.mkdir()
            pages.append(inspect(f"{DATA / real}{name}", folder))
    for shown in pages:
        browser.open(shown, width=360, **media)
        assert browser.run("document.documentElement.scrollWidth") <= 360
        # What may be wider scrolls by itself, also by keyboard.
        wide = "[...document.querySelectorAll('.scroll')].every((it) => it.tabIndex === 0)"
        assert browser.run(wide)


def test_text_has_contrast(browser: chromium.Chromium, page: Path) -> None:
    """Of at least 4.5, as WCAG 2.2 asks for."""
    ratio = """
    (() => {
      const style = getComputedStyle(document.documentElement);
      const light = (name) => {
        const probe = document.body.appendChild(document.createElement('i'));
        probe.style.color = style.getPropertyValue(name);
        const parts = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255);
        probe.remove();
        const [r, g, b] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const contrast = (a, b) => {
        const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
        return (high + 0.05) / (low + 0.05);
      };
      const kinds = ['--real', '--integer', '--index', '--text-kind', '--other', '--metadata'];
      const texts = ['--text', '--dim', '--accent', '--high', '--medium', '--low'];
      const all = [...kinds.map((kind) => contrast('--ink', kind)), ...texts.map((it) => contrast(it, '--card'))];
      return Math.min(...all);
    })()"""
    for scheme in ["light", "dark"]:
        browser.open(page, prefers_color_scheme=scheme)
        assert browser.run(ratio) >= 4.5, scheme
