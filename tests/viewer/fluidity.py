"""How fluid the viewer is in a real browser, as a person would notice; for tests and benchmarks alike."""

from tests.report.browser import Page

IN_VIEW = """const grid = document.querySelector('.grid'), box = grid.getBoundingClientRect();
    const seen = () => [...grid.querySelectorAll('.cell')].filter(cell => {
        const own = cell.getBoundingClientRect(); return own.bottom > box.top + 1 && own.top < box.bottom - 1; });
    const waits = () => !seen().length || seen().some(cell => cell.dataset.ready !== '1');
    const frame = () => new Promise(requestAnimationFrame);"""


def first_view(page: Page) -> float:
    """Milliseconds from the call of a page with a grid until every cell in view has its picture and its words."""
    page.wait("document.querySelectorAll('.cell[data-ready=\"1\"]').length")
    return page.run(f"(async () => {{ {IN_VIEW} while (waits()) await frame(); return performance.now(); }})()")


def first_planes(page: Page) -> float:
    """Milliseconds from the call of the page of lesions until all three planes are drawn."""
    return page.run("""(async () => {
        const drawn = () => { const images = [...document.querySelectorAll('.planes:not([hidden]) .slice img')];
            return images.length >= 3 && images.every(image => image.complete && image.naturalWidth); };
        while (!drawn()) await new Promise(requestAnimationFrame);
        return performance.now(); })()""")


def jumps(page: Page) -> list[float]:
    """Milliseconds from a jump to a far place until every cell in view has its picture and its words."""
    return page.run(f"""(async () => {{ {IN_VIEW}
        const took = [];
        for (const share of [0.3, 0.9, 0.1, 0.55, 0.75]) {{
            const start = performance.now();
            grid.scrollTop = share * grid.scrollHeight;
            await frame();
            while (waits()) await frame();
            took.push(performance.now() - start);
        }}
        return took; }})()""")


def steady_scroll(page: Page, pixels: int, frames: int = 90) -> dict[str, int]:
    """So many pixels a frame: frames with a row without pictures (`blank`) or cells (`holes`), or with a cell twice."""
    return page.run(f"""(async () => {{ {IN_VIEW}
        grid.scrollTop = 0.2 * grid.scrollHeight;
        for (let n = 0; n < 40 || waits(); n += 1) await frame();
        const found = {{frames: 0, blank: 0, holes: 0, twice: 0}};
        while (found.frames < {frames}) {{
            grid.scrollTop += {pixels};
            await frame();
            const cells = seen(), tall = cells[0].offsetHeight;
            const rows = Map.groupBy(cells, cell => Math.round(cell.getBoundingClientRect().top));
            const tops = [...rows.keys()].sort((a, b) => a - b);
            const all = [...grid.querySelectorAll('.cell')].map(cell => cell.id);
            found.frames += 1;
            found.blank += [...rows.values()].some(row => row.every(cell => cell.dataset.ready !== '1'));
            found.holes += tops[0] > box.top + 12 || tops.at(-1) + tall < box.bottom - 12
                || tops.some((top, n) => n && top - tops[n - 1] > tall + 12);
            found.twice += new Set(all).size !== all.length;
        }}
        return {{...found, cells: grid.querySelectorAll('.cell').length}}; }})()""")


def wheel_frames(page: Page, turns: int = 30) -> list[float]:
    """Milliseconds of each picture of the screen while the wheel zooms the map."""
    page.run(
        "window.frames = []; (function next(last) {"
        " requestAnimationFrame(now => { frames.push(now - last); next(now); }); })(performance.now()); 0"
    )
    x, y = page.middle(".plane canvas")
    for _ in range(turns):
        page.wheel(x, y, down=-20)
    return page.run("frames.slice(2)")
