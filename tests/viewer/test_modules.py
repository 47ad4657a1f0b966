"""The front end's modules, each by itself, in the browser that runs them; what they compute is computed again here."""

import json
import random
from itertools import pairwise
from urllib.parse import parse_qs, urlencode

import numpy as np
import pytest

from tests.viewer.driving import serving


@pytest.fixture(scope="module")
def modules(chromium, whole_run):
    """`modules("layout.js", "own.columnsIn(100, 20, 5)")`: the value of an expression over a module's exports."""
    with serving(whole_run) as address:
        # without the token: the page that asks for it has no script of its own
        page = chromium.open(f"{address}/samples", width=800)

        def evaluate(module: str, expression: str, **given):
            names = "".join(f"const {name} = {json.dumps(value)};" for name, value in given.items())
            told = f"import('/static/{module}').then(async (own) => {{ {names} return {expression}; }})"
            return page.run(told)

        yield evaluate


# where the cells lie


def test_as_many_columns_as_fit_and_one_at_least(modules):
    for width, cell, gap in [(1000, 96, 8), (103, 96, 8), (10, 96, 8), (200, 96, 8), (199, 96, 8)]:
        fitting = [n for n in range(1, 100) if n * cell + (n - 1) * gap <= width]
        columns, wide = modules(
            "layout.js", f"[own.columnsIn({width}, {cell}, {gap}), own.widened({width}, {cell}, {gap})]"
        )
        assert columns == max(fitting, default=1)
        assert columns * wide + (columns - 1) * gap <= max(width, wide)
        assert columns == 1 or wide >= cell


def test_the_rows_in_view_are_those_that_touch_it(modules):
    for top, height, rows, spare in [
        (0, 500, 100, 0),
        (95, 10, 100, 0),
        (730, 500, 12, 2),
        (0, 500, 0, 3),
        (9999, 500, 12, 1),
    ]:
        touching = [r for r in range(rows) if r * 100 < top + height and (r + 1) * 100 > top]
        first, end = modules("layout.js", f"own.rowsShown({top}, {height}, 100, {rows}, {spare})")
        assert 0 <= first <= rows and 0 <= end <= rows
        assert set(touching) <= set(range(first, end))
        assert end - first <= len(touching) + 2 * spare + 1 or not touching


@pytest.mark.parametrize(
    "index, key, leads",
    [
        (0, "ArrowLeft", 0), (0, "ArrowRight", 1), (0, "ArrowDown", 4), (5, "ArrowUp", 1), (2, "ArrowUp", 2),
        (9, "ArrowRight", 9), (7, "ArrowDown", 9), (8, "ArrowDown", 8), (3, "Home", 0), (3, "End", 9),
        (9, "PageUp", 1), (0, "PageDown", 8), (3, "PageDown", 9), (1, "x", 1),
    ],
)  # fmt: skip
def test_keys_lead_where_one_expects(modules, index, key, leads):
    """Ten cells in rows of four: 0-3, 4-7, 8-9; a page is two rows."""
    given = {"columns": 4, "page": 2, "count": 10}
    assert modules("layout.js", "own.stepped(index, key, given)", index=index, key=key, given=given) == leads


def test_no_key_leads_out_of_the_grid(modules):
    keys = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"]
    script = """keys.flatMap(key => [1, 2, 5, 11, 12].flatMap(count => [1, 3, 20].flatMap(columns =>
        [...Array(count).keys()].map(index => own.stepped(index, key, {columns, page: 2, count}))
            .filter(to => !(to >= 0 && to < count)))))"""
    assert modules("layout.js", script, keys=keys) == []
    assert modules("layout.js", "own.stepped(0, 'End', {columns: 3, page: 1, count: 0})") == 0


# lasso


def winding(polygon, x, y):
    """Inside by crossing number, edge by edge."""
    crossings = 0
    for (x0, y0), (x1, y1) in zip(polygon, [*polygon[1:], polygon[0]], strict=True):
        if (y0 > y) != (y1 > y):
            crossings += x < x0 + (y - y0) / (y1 - y0) * (x1 - x0)
    return crossings % 2 == 1


def test_a_lasso_takes_what_lies_inside(modules):
    draw = random.Random(1)
    points = [(draw.random(), draw.random()) for _ in range(400)]
    star = [
        (0.5 + r * np.cos(a), 0.5 + r * np.sin(a))
        for r, a in zip([0.45, 0.15] * 7, np.arange(14) * np.pi / 7, strict=True)
    ]
    found = modules(
        "lasso.js", "own.within(star, xs, ys)", star=star, xs=[x for x, _ in points], ys=[y for _, y in points]
    )
    assert found == [n for n, (x, y) in enumerate(points) if winding(star, x, y)]
    assert 20 < len(found) < 300
    assert modules("lasso.js", "own.within([[0, 0], [1, 1]], [0.5], [0.5])") == []


def test_a_lasso_stands_in_an_address_and_comes_back(modules):
    shape = [[0.123456, -1e-7], [3e5, 2.5], [-4, 1 / 3]]
    text = modules("lasso.js", "own.written(shape)", shape=shape)
    assert np.allclose(modules("lasso.js", "own.read(text)", text=text), shape, rtol=1e-4)
    for wrong in ("", "1,2;3", "a,b;c,d;e,f", "1,2;3,4", "1,2;3,4;5,NaN"):
        assert modules("lasso.js", "own.read(text)", text=wrong) == []


def test_fewer_corners_lie_near_the_path(modules):
    angles = np.linspace(0, 2 * np.pi, 300)
    path = [[float(np.cos(a)), float(np.sin(a))] for a in angles]
    few = modules("lasso.js", "own.simplified(path, 0.01)", path=path)
    assert 10 < len(few) < 60 and few[0] == path[0] and few[-1] == path[-1]
    corners = np.array(few)
    ends, starts = corners[1:], corners[:-1]
    for x, y in path:
        along = np.clip((([x, y] - starts) * (ends - starts)).sum(1) / ((ends - starts) ** 2).sum(1), 0, 1)
        assert np.hypot(*(starts + along[:, None] * (ends - starts) - [x, y]).T).min() <= 0.0101


# selection and address


def test_ranges_are_short_and_come_back(modules):
    draw = random.Random(2)
    chosen = sorted(draw.sample(range(300), 200))
    text = modules("selection.js", "own.ranges(chosen)", chosen=chosen)
    assert len(text) < len(",".join(map(str, chosen)))
    assert modules("selection.js", "own.unranged(text)", text=text) == chosen
    assert modules("selection.js", "own.ranges([])") == "" and modules("selection.js", "own.unranged('')") == []
    assert modules("selection.js", "own.unranged('2-1000000000,x,-3,7', 5)") == [2, 3, 4]


def test_state_stands_in_the_address_only_where_it_differs(modules):
    defaults = {"split": "", "filter": [], "at": 0, "heat": False, "sort": "id"}
    values = {"split": "test", "filter": ["a:is:b&c", "d:has:é"], "at": 7, "heat": True, "sort": "id"}
    text = modules("url.js", "own.format(values, defaults)", values=values, defaults=defaults)
    assert parse_qs(text) == {"split": ["test"], "filter": values["filter"], "at": ["7"], "heat": ["1"]}
    assert modules("url.js", "own.parse('?' + text, defaults)", text=text, defaults=defaults) == values
    assert modules("url.js", "own.parse('', defaults)", defaults=defaults) == defaults
    odd = urlencode({"at": "x", "heat": "yes", "other": "1"})
    assert modules("url.js", "own.parse(odd, defaults)", odd=odd, defaults=defaults) == defaults


def test_filters_are_read_as_the_server_reads_them(modules):
    for text, parts in {
        "a:is:b": ["a", "is", "b"], "a:b:above:3": ["a:b", "above", "3"], "a:is:b:has:c": ["a", "is", "b:has:c"],
        "a:is:": ["a", "is", ""],
    }.items():  # fmt: skip
        told = modules("filters.js", "own.filterParts(text)", text=text)
        assert [told["column"], told["operator"], told["value"]] == parts
        assert modules("filters.js", "own.filterText(...parts)", parts=parts) == text
    assert modules("filters.js", "own.filterParts('nothing') === undefined")


# keys and undo


@pytest.mark.parametrize(
    "event, name",
    [
        ({"key": "a"}, "a"), ({"key": "?", "shiftKey": True}, "?"), ({"key": "A", "shiftKey": True}, "A"),
        ({"key": " "}, "Space"),
        ({"key": "Z", "ctrlKey": True, "shiftKey": True}, "Ctrl+Shift+z"), ({"key": "z", "metaKey": True}, "Ctrl+z"),
        ({"key": "ArrowDown", "shiftKey": True}, "Shift+ArrowDown"), ({"key": "x", "altKey": True}, "Alt+x"),
    ],
)  # fmt: skip
def test_keys_have_one_name_each(modules, event, name):
    assert modules("keys.js", "own.chord(new KeyboardEvent('keydown', event))", event=event) == name


def test_the_last_binding_wins_fields_keep_their_letters_and_modal_layers_hide_the_rest(modules):
    script = """(() => {
        const heard = [];
        const told = key => new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true});
        const press = (key, target = document.body) => target.dispatchEvent(told(key));
        const hear = words => ({keys: ['q'], does: words, run: () => { heard.push(words); }});
        const bound = (words, more = {}) => own.bind([{...hear(words), ...more}]);
        const first = bound('first'), second = bound('second', {run: () => { heard.push('passed'); return false; }});
        press('q');                                                     // second lets it pass to first
        const never = bound('never', {when: () => false});
        press('q');
        const field = document.querySelector('input');
        press('q', field);                                              // typed into a field
        const modal = own.bind([{keys: ['w'], run: () => { heard.push('modal'); }}], {modal: true});
        press('q'); press('w');
        modal(); never(); second(); press('q'); first(); press('q');
        return heard;
    })()"""
    assert modules("keys.js", script) == ["passed", "first", "passed", "first", "modal", "first"]


def test_undo_goes_back_step_by_step_and_a_failed_step_does_not_count(modules):
    script = """(async () => {
        document.body.insertAdjacentHTML('beforeend', '<div id=said></div><div id=trouble></div>');
        let value = 0;
        const later = () => new Promise(done => setTimeout(done, 5));
        const undo = new own.Undo();
        const add = n => ({
            says: `plus ${n}`,
            forward: async () => { await later(); value += n; },
            back: async () => { await later(); value -= n; },
        });
        undo.perform(add(1)); undo.perform(add(10));
        await undo.perform({says: 'broken', forward: () => { throw new Error('no room'); }, back: () => {}});
        const trail = [value, document.getElementById('trouble').innerText.includes('no room')];
        undo.undo(); await undo.undo(); trail.push(value, undo.canUndo, undo.canRedo);
        await undo.redo(); trail.push(value, document.getElementById('said').innerText);
        await undo.perform(add(100)); trail.push(value, undo.canRedo);
        await undo.undo(); await undo.undo(); await undo.undo(); trail.push(value);
        return trail;
    })()"""
    assert modules("undo.js", script) == [11, True, 0, False, True, 1, "Redone: plus 1", 101, False, 0]


# lists that come in blocks


def test_blocks_come_once_far_ones_are_given_up_and_old_ones_forgotten(modules):
    script = """(async () => {
        const asked = [], arrived = [], given = [];
        const load = (first, end, signal) => new Promise((done, fail) => {
            asked.push(first);
            signal.addEventListener('abort', () => { given.push(first); fail(new Error('gone')); });
            setTimeout(() => done(Array.from({length: end - first}, (_, n) => first + n)), 5);
        });
        const blocks = new own.Blocks({count: 1005, size: 10, keep: 6, load, arrived: first => arrived.push(first)});
        const wait = () => new Promise(done => setTimeout(done, 20));
        blocks.near(995, 1005); blocks.near(20, 35);        // the first question is given up for the second
        await wait();
        const at = index => { const found = blocks.at(index); return found && found.block[found.place]; };
        const values = [at(20), at(34), at(59), at(60) ?? null];
        const trail = {asked: [...asked], given, arrived: [...arrived].sort((a, b) => a - b), values};
        blocks.near(20, 35); await wait();
        trail.again = asked.length;
        blocks.near(500, 530); await wait();
        trail.forgotten = at(20) ?? null; trail.kept = blocks.kept.size; trail.last = null;
        blocks.near(1000, 1005); await wait(); trail.last = at(1004);
        return trail;
    })()"""
    told = modules("blocks.js", script)
    assert sorted(told["given"]) == [980, 990, 1000]
    assert told["arrived"] == [10, 20, 30, 40, 50] and told["values"] == [20, 34, 59, None]
    assert told["again"] == len(told["asked"]), "a block that is there was asked for again"
    assert told["forgotten"] is None and told["kept"] <= 6 and told["last"] == 1004


# the plane of points


def test_the_nearest_point_is_found(modules):
    draw = np.random.default_rng(0)
    xs, ys = draw.normal(size=(2, 500)).round(3)
    asked = draw.normal(size=(40, 2)).round(3).tolist()
    script = """(() => { const near = new own.Nearest(xs, ys, [-4, 4, -4, 4], 16);
        return asked.map(([x, y]) => near.at(x, y, 0.3)); })()"""
    found = modules("points.js", script, xs=xs.tolist(), ys=ys.tolist(), asked=asked)
    for (x, y), place in zip(asked, found, strict=True):
        far = np.hypot(xs - x, ys - y)
        assert place == -1 if far.min() > 0.3 else far[place] == pytest.approx(far.min())


def test_zooming_keeps_what_is_under_the_pointer(modules):
    script = """(() => { const view = {x: 2, y: -1, scale: 30};
        const closer = own.zoomed(view, 800, 600, 650, 100, 2.5);
        return [own.toData(view, 800, 600, 650, 100), own.toData(closer, 800, 600, 650, 100), closer.scale,
                own.toScreen(view, 800, 600, ...own.toData(view, 800, 600, 12, 34))]; })()"""
    before, after, scale, back = modules("points.js", script)
    assert np.allclose(before, after) and scale == 75 and np.allclose(back, [12, 34])
    assert np.allclose(before, [2 + 250 / 30, -1 + 200 / 30])


def test_arrows_lead_to_the_nearest_point_that_way(modules):
    points = {"x": [0, 1, -1, 0.2, 5], "y": [0, 0.3, 0, 2, 0]}
    leads = {key: modules("points.js", "own.towards(points, 0, key)", points=points, key=f"Arrow{key}")
             for key in ("Right", "Left", "Up", "Down")}  # fmt: skip
    assert leads == {"Right": 1, "Left": 2, "Up": 3, "Down": -1}


def test_points_are_drawn_where_they_are_in_their_colours(modules):
    script = """(() => { const pixels = new Uint32Array(20 * 10);
        own.plot(pixels, 20, 10, {x: [0, 3, 99], y: [0, 1, 0]}, [7, 8, 9], [0, 1, 2], {x: 0, y: 0, scale: 2}, 2);
        return [...pixels.entries()].filter(([, colour]) => colour); })()"""
    drawn = modules("points.js", script)
    assert sorted(place for place, colour in drawn if colour == 7) == [89, 90, 109, 110]
    assert len(drawn) == 8 and {colour for _, colour in drawn} == {7, 8}, "what lies outside is left out"


def test_colours_tell_the_most_frequent_apart(modules):
    values = [0.0] * 5 + [1.0] * 9 + [float(n) for n in range(2, 12)] + [None]
    script = """(() => { const column = {kind: 'text', texts: [...'abcdefghijkl']};
        const found = own.coloured(column, values.map(value => value ?? NaN));
        return {legend: found.legend, place: [...found.place]}; })()"""
    told = modules("colours.js", script, values=values)
    assert [text for _, text in told["legend"]][:2] == ["a", "b"] and told["legend"][-1][1] == "others"
    assert len(told["legend"]) == 9 and told["place"][-1] == 8 and len({colour for colour, _ in told["legend"]}) == 9
    ramp = modules(
        "colours.js",
        "(() => { const f = own.coloured({kind: 'number'}, [1, 2, 3, NaN]); return [f.range, [...f.place]]; })()",
    )
    assert ramp == [[1, 3], [0, 32, 63, 64]]
    groups = modules(
        "colours.js", "own.coloured({kind: 'number', whole: true}, [3, 3, 1, NaN]).legend.map(([, text]) => text)"
    )
    assert groups == ["1", "3", "others"], "a few whole numbers are names of groups"


def test_colours_of_the_ramp_grow_lighter(modules):
    """So they can be told apart without colour vision (relative luminance as in WCAG 2)."""

    def luminance(hex):
        parts = [int(hex[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    light = [luminance(modules("colours.js", f"own.ramp({share / 10})")) for share in range(11)]
    assert all(later > earlier for earlier, later in pairwise(light))


# words and elements


@pytest.mark.parametrize(
    "value, shown",
    [
        ("null", "–"),
        ("true", "yes"),
        ("12345", "12,345"),
        ("0.12345", "0.1235"),
        ("1e-7", "1.000e-7"),
        ("'<b>'", "<b>"),
    ],
)
def test_numbers_are_shown_as_people_read_them(modules, value, shown):
    assert modules("text.js", f"own.number({value})") == shown


def test_texts_stay_texts(modules):
    hostile = "<img src=x onerror=alert(1)>"
    script = """(() => {
        const inner = own.element('b', {}, hostile);
        const attributes = {title: hostile, hidden: false, 'data-x': null};
        const node = own.element('p', attributes, hostile, [1, [null, false]], inner);
        return [node.outerHTML.includes('<img'), node.textContent, node.getAttributeNames()]; })()"""
    assert modules("dom.js", script, hostile=hostile) == [False, f"{hostile}1{hostile}", ["title"]]


def test_a_grid_of_a_million_cells_holds_few_of_them(modules):
    """Only what is near the view is in the page, each cell where it belongs, and a narrower window keeps the place."""
    script = """(async () => {
        const drawn = new Set();
        const draw = (cell, index) => { cell.textContent = index; drawn.add(index); };
        const grid = new own.Grid({label: 'many', cell: {width: 90, height: 100}, draw});
        grid.node.style.cssText = 'position: fixed; inset: 0; width: 700px; height: 500px; overflow-y: scroll';
        grid.space.style.position = 'relative';
        document.body.append(grid.node);
        grid.show(1e6);
        await new Promise(requestAnimationFrame);
        const count = () => grid.node.querySelectorAll('.cell').length;
        const most = [count()];
        grid.go(543210);
        await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame);
        most.push(count());
        const seen = () => grid.cellOf(543210)?.textContent;
        const trail = {most, there: seen(), at: grid.at, columns: grid.columns, drawn: drawn.size};
        grid.node.style.width = '350px';
        while (grid.columns === trail.columns) await new Promise(requestAnimationFrame);
        trail.narrow = grid.columns; trail.still = seen();
        grid.show(0); trail.none = [count(), grid.node.hidden];
        grid.node.remove();
        return trail;
    })()"""
    told = modules("grid.js", script)
    assert max(told["most"]) < 200 and told["drawn"] < 400
    assert told["there"] == told["still"] == "543210" and told["at"] == 543210
    assert told["narrow"] < told["columns"] and told["none"] == [0, True]


def test_the_pictures_of_one_slice_take_their_places_together(modules):
    """The outlines of a slice are there long before its image; the slice between is asked for and overtaken."""
    seen = modules(
        "slice_view.js",
        """new Promise(async (done) => {
            const waiting = {};
            HTMLImageElement.prototype.decode = function () {
                return new Promise((ready) => (waiting[this.getAttribute("src")] = ready));
            };
            const layers = new own.Layers(["grey", "outlines"]), stage = document.createElement("div");
            stage.append(...layers.nodes);
            const shown = () => [...stage.children].map((image) => image.getAttribute("src"));
            const turn = () => new Promise((next) => setTimeout(next));
            const found = [];
            layers.show(["#grey-1", "#lines-1"]);
            waiting["#lines-1"](); await turn(); found.push(shown());
            layers.show(["#grey-2", "#lines-2"]);
            layers.show(["#grey-3", "#lines-3"]);
            waiting["#grey-1"](); await turn(); found.push(shown());
            waiting["#grey-3"](); await turn(); found.push(shown());
            waiting["#lines-3"](); await turn(); found.push(shown(), Object.keys(waiting).sort());
            done(found);
        })""",
    )
    nothing, first, held, last, fetched = seen
    assert nothing == [None, None] and first == held == ["#grey-1", "#lines-1"] and last == ["#grey-3", "#lines-3"]
    assert fetched == ["#grey-1", "#grey-3", "#lines-1", "#lines-3"]


def test_zooming_keeps_a_spot_where_it_is_and_stays_inside(modules):
    at = {"scale": 2, "left": 0.1, "top": 0.3}
    found = modules("planes.js", "own.zoomed(at, 2, 0.25, 0.5)", at=at)
    assert found["scale"] == 4
    spot = [at["left"] + 0.25 / 2, at["top"] + 0.5 / 2]  # of the slice, under the pointer
    assert [found["left"] + 0.25 / 4, found["top"] + 0.5 / 4] == pytest.approx(spot)
    whole = modules("planes.js", "own.zoomed(at, 0.01, 0.25, 0.5)", at=at)
    assert whole == {"scale": 1, "left": 0, "top": 0}
    assert modules("planes.js", "own.zoomed(at, 1e9, 0, 0)", at=at)["scale"] == 32
    moved = modules("planes.js", "[own.panned(at, 0.2, -0.2), own.panned(at, 9, -9)]", at=at)
    assert moved[0]["left"] == pytest.approx(0) and moved[0]["top"] == pytest.approx(0.4)
    assert (moved[1]["left"], moved[1]["top"]) == (0, 0.5)
    middle = modules("planes.js", "own.centred(at, 0.5, 0.9)", at=at)
    assert (middle["left"], middle["top"]) == (0.25, 0.5)


def test_verdicts_are_kept_taken_back_and_exported_as_text(modules):
    csv, sent, again, failed = modules(
        "verdicts.js",
        """(async () => {
            const sent = [];
            const first = new own.Verdicts([], async (row) => { sent.push(row); });
            first.judge("b", 2, "rejected", true);
            first.judge("a", 10, "accepted", false);
            first.judge("a", 9, "accepted", false);
            first.judge("a", 9, "accepted", false);
            await first.note("=cmd()", 1, 'a "vessel", maybe', true);
            const refused = new own.Verdicts([sent[0]], async () => { throw new Error("no room"); });
            const errors = [refused.judge("b", 2, "accepted", false), refused.judge("c", 1, "accepted", false)];
            const told = await Promise.all(errors.map((kept) => kept.catch((error) => error.message)));
            const again = new own.Verdicts([sent[0]], async () => {});
            const each = sent.map((row) => [row.case, row.lesion, row.verdict]);
            return [first.csv(), each, again.csv(), [...told, refused.csv()]];
        })()""",
    )
    head = "case,lesion,verdict,note,blind\n"
    assert csv == head + '\'=cmd(),1,,"a ""vessel"", maybe",true\na,10,accepted,,false\nb,2,rejected,,true\n'
    assert sent == [["b", 2, "rejected"], ["a", 10, "accepted"], ["a", 9, "accepted"], ["a", 9, ""], ["=cmd()", 1, ""]]
    assert again == head + "b,2,rejected,,true\n"
    assert failed == ["no room", "no room", again], "what was not kept is not shown either"
