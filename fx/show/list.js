// The list of a graph's entries.  Only the rows in view are elements, so that
// it does not matter how many there are.

const HEIGHT = 26; // of a row, in pixels: as in page.css
const AROUND = 12; // rows that are made above and below the view

const number = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact" });

function element(tag, className, text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

function bytesText(bytes) {
  if (!bytes) return "";
  const unit = Math.min(3, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** unit;
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${["B", "KiB", "MiB", "GiB"][unit]}`;
}

function timeText(ms) {
  if (ms === undefined) return "";
  return ms < 0.1 ? `${Math.round(ms * 1000)} µs` : `${ms < 10 ? ms.toFixed(2) : ms.toFixed(0)} ms`;
}

// What a pass has noted of a node: a number, or text.
function noteText(value = "") {
  return typeof value === "number" ? number.format(value) : value;
}

// What a module has: nodes, parameters, and how many nodes were changed.
function countsText({ nodes, weights, marks }) {
  const parts = [`${number.format(nodes)} node${nodes === 1 ? "" : "s"}`];
  if (weights) parts.push(`${compact.format(weights)} parameters`);
  const changes = Object.entries(marks).map(([mark, n]) => `${SIGNS[mark] ?? mark}${n}`);
  return changes.join(" ") || parts.join(", ");
}

const SIGNS = { "-": "−", m: "↕" };
const MARKS = { "+": "added", "-": "removed", "~": "changed", m: "moved" };

class List {
  // `pick` is called with the entry that was selected.
  constructor(box, graph, pick) {
    Object.assign(this, { box, graph, pick, selected: 0, hits: new Set() });
    this.shown = new Map();
    this.space = element("div", "space");
    this.arcs = graph.sides.map((_, s) => svg("svg", { class: `arcs side-${s}`, "aria-hidden": "true" }));
    this.space.append(...this.arcs);
    box.append(this.space);
    box.addEventListener("scroll", () => this.soon());
    box.addEventListener("keydown", (event) => this.key(event));
    box.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.soon()).observe(box);
    const longest = Math.max(...graph.sides.flatMap((side) => side.nodes.map((node) => node.type?.length ?? 0)));
    document.body.style.setProperty("--value", `${Math.max(5, Math.min(longest, 24))}ch`);
    this.most = graph.sides.map((side) => Math.max(...side.nodes.map((node) => node.ms ?? 0)));
  }

  soon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.draw();
    });
  }

  // -- drawing ---------------------------------------------------------------

  // Draw anew after modules were opened or closed, or others were found.
  renew() {
    for (const row of this.shown.values()) row.remove();
    this.shown.clear();
    this.draw();
  }

  draw() {
    const { entries } = this.graph;
    const top = Math.floor(this.box.scrollTop / HEIGHT);
    const count = Math.ceil(this.box.clientHeight / HEIGHT);
    const first = Math.max(0, top - AROUND);
    const last = Math.min(entries.length - 1, top + count + AROUND);
    this.space.style.height = `${entries.length * HEIGHT}px`;
    for (const [at, row] of this.shown) {
      if (at >= first && at <= last) continue;
      row.remove();
      this.shown.delete(at);
    }
    for (let at = first; at <= last; at++) {
      if (this.shown.has(at)) continue;
      const row = this.row(entries[at]);
      this.shown.set(at, row);
      this.space.append(row);
    }
    this.arcs.forEach((each, s) => {
      each.replaceChildren(...arcs(this.graph, s, first, last, this.selected, HEIGHT));
    });
    this.select(this.selected, false);
  }

  row(item) {
    const { graph } = this;
    const made = element("div", "row");
    made.id = `row-${item.number}`;
    made.style.top = `${item.number * HEIGHT}px`;
    const about = { role: "treeitem", "aria-level": item.depth + 1 };
    about["aria-posinset"] = item.place + 1;
    about["aria-setsize"] = item.outer.items.length;
    if (item.items) about["aria-expanded"] = item.open;
    for (const [name, value] of Object.entries(about)) made.setAttribute(name, value);
    const mark = item.row?.mark;
    if (mark) {
      made.dataset.mark = mark;
      made.classList.toggle("old", graph.sideOf(item.row) === 0);
      const sign = element("span", "mark", SIGNS[mark] ?? mark);
      sign.title = MARKS[mark];
      sign.setAttribute("aria-label", MARKS[mark]);
      sign.setAttribute("role", "img");
      made.append(sign);
    }
    if (item.items) made.append(...this.moduleCells(item));
    else made.append(...graph.sides.map((_, s) => this.nodeCell(item, s)));
    if (this.hasHit(item)) made.classList.add("hit");
    return made;
  }

  nodeCell(item, s) {
    const cell = element("span", `cell side-${s}`);
    const node = this.graph.nodeOf(item.row, s);
    if (!node) {
      // Two graphs have one column of values: of what was removed, the old one.
      if (s) cell.append(element("span", "type", this.graph.nodeOf(item.row, 0).type));
      return cell;
    }
    cell.dataset.op = node.op;
    const name = element("span", "name");
    name.style.paddingLeft = `${item.depth * 14 + 14}px`;
    const around = (item.outer.name ?? "").split("@")[0].replaceAll(".", "_");
    name.append(this.nameIn(`${around}_`, node.name));
    name.title = node.name;
    const call = element("span", "call", node.call);
    call.title = node.call;
    cell.append(name, call, ...this.valueCells(node, s));
    return cell;
  }

  // Below its module a name stands without the module's.
  nameIn(prefix, name) {
    const made = element("b");
    const cut = name.startsWith(prefix) && name.length > prefix.length ? prefix.length : 0;
    if (cut) made.append(element("span", "prefix", name.slice(0, cut)));
    made.append(name.slice(cut));
    return made;
  }

  moduleCells(module) {
    const totals = this.graph.totals(module);
    const made = this.graph.sides.map((_, s) => {
      const cell = element("span", `cell module side-${s}`);
      const name = element("span", "name");
      name.style.paddingLeft = `${module.depth * 14}px`;
      name.append(element("span", "fold", module.open ? "▾" : "▸"), this.nameIn(`${module.outer.name}.`, module.name));
      const call = element("span", "call");
      const newest = s === this.graph.sides.length - 1;
      call.append(element("i", "", module.kind || "module"), newest ? ` ${countsText(totals)}` : "");
      call.title = call.textContent;
      cell.append(name, call, ...this.valueCells(newest && !module.open ? totals : {}, s));
      return cell;
    });
    return made;
  }

  valueCells(of, s) {
    const cells = [element("span", "type", of.type), element("span", "bytes", bytesText(of.bytes))];
    if (this.most[s]) {
      const time = element("span", "ms", timeText(of.ms));
      time.style.setProperty("--part", `${Math.min(100, (100 * (of.ms ?? 0)) / this.most[s])}%`);
      cells.push(time);
    }
    return [...cells, ...this.graph.notes.map((_, at) => element("span", "note", noteText(of.notes?.[at])))];
  }

  // Whether something that was searched for is in an entry.
  hasHit(item) {
    if (item.row) return this.hits.has(item.row.number);
    if (item.open) return false;
    for (let row = item.first; row <= item.last; row++) if (this.hits.has(row)) return true;
    return false;
  }

  // -- selecting -------------------------------------------------------------

  // Mark an entry, its inputs and its users.
  select(at, show = true) {
    const before = this.selected;
    const { entries } = this.graph;
    this.selected = Math.max(0, Math.min(entries.length - 1, at));
    const item = entries[this.selected];
    if (show) this.scrollTo(this.selected);
    const near = this.graph.sides.map((_, s) => this.graph.edges(item, s));
    for (const [place, row] of this.shown) {
      row.classList.toggle("feeds", near.some((each) => each.from.includes(place)));
      row.classList.toggle("uses", near.some((each) => each.to.includes(place)));
      if (place === this.selected) row.setAttribute("aria-selected", "true");
      else row.removeAttribute("aria-selected");
    }
    const inView = this.shown.has(this.selected);
    if (inView) this.box.setAttribute("aria-activedescendant", `row-${this.selected}`);
    else this.box.removeAttribute("aria-activedescendant");
    if (!show) return;
    if (before !== this.selected) this.draw();
    this.pick(item);
  }

  scrollTo(at) {
    const top = at * HEIGHT;
    const { scrollTop, clientHeight } = this.box;
    if (top < scrollTop) this.box.scrollTop = top;
    else if (top + HEIGHT > scrollTop + clientHeight) this.box.scrollTop = top + HEIGHT - clientHeight;
  }

  // Select a row from elsewhere, in the middle of the view.
  show(row) {
    const at = this.graph.reveal(row);
    const far = Math.abs(at * HEIGHT - this.box.scrollTop - this.box.clientHeight / 2);
    if (far > this.box.clientHeight / 2 - HEIGHT) this.box.scrollTop = at * HEIGHT - this.box.clientHeight / 2;
    this.renew();
    this.select(at);
  }

  fold(item, open) {
    if (!item.items || item.open === open) return;
    item.open = open;
    this.graph.lay();
    this.renew();
    this.select(item.number);
  }

  click(event) {
    const row = event.target.closest(".row");
    if (!row) return;
    const item = this.graph.entries[Number(row.id.slice(4))];
    if (item.items) this.fold(item, !item.open);
    this.select(item.number);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const item = this.graph.entries[this.selected];
    const page = Math.max(1, Math.floor(this.box.clientHeight / HEIGHT) - 1);
    const to = {
      ArrowUp: this.selected - 1,
      ArrowDown: this.selected + 1,
      PageUp: this.selected - page,
      PageDown: this.selected + page,
      Home: 0,
      End: this.graph.entries.length - 1,
    }[event.key];
    if (to !== undefined) this.select(to);
    else if (event.key === "ArrowRight" && item.open) this.select(this.selected + 1);
    else if (event.key === "ArrowRight") this.fold(item, true);
    else if (event.key === "ArrowLeft" && item.open) this.fold(item, false);
    else if (event.key === "ArrowLeft" && item.outer.outer) this.select(item.outer.number);
    else if (event.key === "Enter" || event.key === " ") this.fold(item, !item.open);
    else return;
    event.preventDefault();
  }
}
