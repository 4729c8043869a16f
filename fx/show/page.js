// The page: what is above the list, and the details and code beside it.

const graph = new Graph(JSON.parse(document.getElementById("data").textContent));
const byId = (id) => document.getElementById(id);
const list = new List(byId("tree"), graph, describe);
const NAMES = graph.sides[1] ? ["before", "after"] : [""];
const CHUNK = 200; // lines that the browser lays out together
const MANY = 50; // inputs or users that are listed

// -- details -----------------------------------------------------------------

function describe(item) {
  const details = byId("details");
  const parts = item.items ? ofModule(item) : [...item.row.at.keys()].reverse().flatMap((s) => ofNode(item.row, s));
  if (item.row?.what) parts.unshift(changes(item.row));
  details.replaceChildren(...parts);
  details.scrollTop = 0;
  if (item.row) markLine(item.row);
}

function changes(row) {
  const made = element("ul", "changes");
  made.append(...row.what.map((line) => element("li", "", line)));
  return made;
}

// A heading and a list of terms; terms that say nothing are left out.
function facts(heading, terms) {
  const made = element("dl");
  for (const [term, value] of terms) {
    if (!value || value.length === 0) continue;
    const about = element("dd");
    about.append(...[value].flat());
    made.append(element("dt", "", term), about);
  }
  return [element("h2", "", heading), made];
}

function ofNode(row, s) {
  const node = graph.nodeOf(row, s);
  if (!node) return [];
  const side = graph.sides[s];
  return facts([node.name, NAMES[s]].filter(Boolean).join(", "), [
    ["does", element("code", "", node.call)],
    ["op", node.op],
    ["target", node.target !== node.name && element("code", "", node.target)],
    ["module", node.module && element("code", "", node.module)],
    ["value", [node.type, bytesText(node.bytes)].filter(Boolean).join(" · ")],
    ["time", timeText(node.ms)],
    ...graph.notes.map((key, at) => [key, noteText(node.notes?.[at])]),
    ["parameters", node.weights && number.format(node.weights)],
    ["in", graph.modulesAround(row).map((each) => `${each.name} ${each.kind && `(${each.kind})`}`).join(" › ")],
    ["source", lines(side.stacks[node.stack])],
    ["inputs", links(side, node.inputs)],
    ["users", links(side, node.users)],
  ]);
}

function ofModule(module) {
  const totals = graph.totals(module);
  const s = graph.sides.length - 1;
  const ends = (from) => {
    const inside = (at) => at.row.number >= module.first && at.row.number <= module.last;
    const rows = graph.rows.slice(module.first, module.last + 1).map((row) => graph.nodeOf(row, s)).filter(Boolean);
    const { nodes } = graph.sides[s];
    const found = rows.flatMap((node) => (from ? node.inputs.filter((at) => !inside(nodes[at])) : node.users.some((at) => !inside(nodes[at])) ? [node.number] : []));
    return links(graph.sides[s], [...new Set(found)]);
  };
  return facts(module.name, [
    ["class", module.kind],
    ["nodes", number.format(totals.nodes)],
    ["values", bytesText(totals.bytes)],
    ["time", totals.ms ? timeText(totals.ms) : ""],
    ...graph.notes.map((key, at) => [key, noteText(totals.notes[at])]),
    ["parameters", totals.weights && number.format(totals.weights)],
    ["takes", ends(true)],
    ["gives", ends(false)],
  ]);
}

// The user's lines, the outermost first.
function lines(frames = []) {
  return frames.map(([file, line, name, code]) => {
    const made = element("div", "frame");
    made.append(element("span", "", `${file.split("/").slice(-2).join("/")}:${line} in ${name}`), element("code", "", code));
    made.title = `${file}:${line}`;
    return made;
  });
}

function links(side, numbers) {
  const made = numbers.slice(0, MANY).map((at) => {
    const link = element("button", "link", side.nodes[at].name);
    link.type = "button";
    link.addEventListener("click", () => {
      list.show(side.nodes[at].row);
      byId("tree").focus();
    });
    return link;
  });
  if (numbers.length > MANY) made.push(` and ${number.format(numbers.length - MANY)} more`);
  return made;
}

// -- code ----------------------------------------------------------------------

// In chunks, of which the browser lays out those in view alone.
function showCode(s) {
  if (showCode.side === s) return;
  showCode.side = s;
  const text = graph.sides[s].code.split("\n");
  const body = element("div", "lines");
  const made = text.map(codeLine);
  for (let at = 0; at < made.length; at += CHUNK) {
    const chunk = element("pre");
    chunk.append(...made.slice(at, at + CHUNK));
    chunk.style.containIntrinsicSize = `auto ${Math.min(CHUNK, made.length - at) * 18}px`;
    body.append(chunk);
  }
  showCode.lines = made;
  body.addEventListener("click", (event) => {
    const line = made.indexOf(event.target.closest(".line")) + 1;
    const node = graph.sides[s].nodes.find((each) => each.line === line);
    if (node && getSelection().isCollapsed) list.show(node.row);
  });
  byId("code").replaceChildren(element("h2", "", ["Code", NAMES[s]].filter(Boolean).join(", ")), body);
}

// What a line drops after its last use is of less interest.
function codeLine(text) {
  const cut = /;  .* = None$/.exec(text)?.index ?? text.length;
  const line = element("span", "line", `${text.slice(0, cut)}`);
  if (cut < text.length) line.append(element("i", "", text.slice(cut)));
  line.append("\n");
  return line;
}

function markLine(row) {
  const s = graph.sideOf(row);
  showCode(s);
  const box = byId("code");
  box.querySelector(".bar")?.classList.remove("bar");
  const line = showCode.lines[graph.nodeOf(row, s).line - 1];
  if (!line) return;
  line.classList.add("bar");
  const view = box.getBoundingClientRect();
  const at = line.getBoundingClientRect();
  if (at.top < view.top || at.bottom > view.bottom) box.scrollTop += at.top - view.top - box.clientHeight / 2;
}

// -- search, and what else is above the list -----------------------------------------

function summary() {
  const side = graph.sides.at(-1);
  const sum = (key) => side.nodes.reduce((total, node) => total + (node[key] ?? 0), 0);
  const parts = [`${number.format(side.nodes.length)} nodes`, `${number.format(side.weights)} parameters`];
  if (sum("bytes")) parts.push(`${side.problem ? "at least " : ""}${bytesText(sum("bytes"))} of values`);
  if (sum("ms")) parts.push(timeText(sum("ms")));
  const marks = Object.entries(graph.totals(graph.root).marks).map(([mark, n]) => `${number.format(n)} ${MARKS[mark]}`);
  if (graph.sides[1]) parts.push(marks.join(", ") || "no difference");
  byId("summary").textContent = parts.join(" · ");
  if (!side.problem) return;
  const [first, ...rest] = side.problem.split("\n");
  const made = element("details");
  made.append(element("summary", "", `Not all shapes are known: ${first}`));
  if (rest.length) made.append(element("pre", "", rest.join("\n").trim()));
  byId("summary").append(made);
}

function headings() {
  const names = ["name", "does", "value", "bytes", list.most.some(Boolean) ? "time" : "", ...graph.notes];
  const classes = ["name", "call", "type", "bytes", "ms"];
  graph.sides.forEach((_, s) => {
    const cell = element("span", `cell side-${s}`);
    names.forEach((name, at) => name && cell.append(element("span", classes[at] ?? "note", at ? name : NAMES[s] || name)));
    byId("columns").append(cell);
  });
}

// Go to the next row of some, or the one before.
function next(rows, step) {
  if (!rows.length) return;
  const item = graph.entries[list.selected];
  const here = item.row?.number ?? item.first - 0.5;
  const ahead = step > 0 ? rows.findIndex((row) => row > here) : rows.findLastIndex((row) => row < here);
  const at = ahead >= 0 ? ahead : step > 0 ? 0 : rows.length - 1;
  list.show(graph.rows[rows[at]]);
  return at + 1;
}

// Find rows; go to one of them.
function search(step) {
  const field = byId("search");
  let at = 0;
  if (field.value !== search.text) {
    search.text = field.value;
    search.rows = graph.search(field.value);
    list.hits = new Set(search.rows);
    list.renew();
    at = search.rows.indexOf(graph.entries[list.selected].row?.number) + 1;
  }
  const { length } = search.rows;
  at ||= next(search.rows, step);
  byId("found").textContent = length ? `${at} of ${length}` : field.value.trim() && "not found";
}

byId("search").addEventListener("input", () => search(1));
byId("search").form.addEventListener("submit", (event) => event.preventDefault());
byId("search").addEventListener("keydown", (event) => {
  if (event.key === "Enter") search(event.shiftKey ? -1 : 1);
  if (event.key === "Escape" || event.key === "ArrowDown") byId("tree").focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target === byId("search")) return;
  event.preventDefault();
  byId("search").focus();
});
for (const open of [true, false]) {
  byId(open ? "open" : "close").addEventListener("click", () => {
    const item = graph.entries[list.selected];
    graph.openAll(open);
    list.selected = graph.entryOfRow[item.row?.number ?? item.first];
    list.renew();
    list.select(list.selected);
  });
}
byId("change").hidden = !graph.sides[1];
byId("change").addEventListener("click", () => {
  next(graph.rows.filter((row) => row.mark).map((row) => row.number), 1);
});
document.body.classList.toggle("two", graph.sides.length > 1);
summary();
headings();
showCode(graph.sides.length - 1);
list.renew();
// Of two graphs, what was removed is of interest, or else what changed.
const first = graph.rows.find((row) => row.mark === "-") ?? graph.rows.find((row) => row.mark);
if (first) list.show(first);
else list.select(0);
