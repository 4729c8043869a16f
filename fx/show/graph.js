// The graph as a list of entries: a node, or a module with nodes in it.  With
// two graphs, an entry is a node of either, or of both.

class Graph {
  constructor({ sides, rows, notes = [] }) {
    this.sides = sides;
    this.notes = notes;
    this.rows = rows ?? sides[0].nodes.map((_, i) => ({ at: [i] }));
    for (const side of sides) this.complete(side);
    this.rows.forEach((row, number) => {
      row.number = number;
      row.at.forEach((at, s) => {
        if (at !== null) sides[s].nodes[at].row = row;
      });
    });
    this.root = this.fold();
    this.openFirst();
    this.lay();
  }

  // What can be said of a node without another look at the others.
  complete(side) {
    side.nodes.forEach((node, number) => {
      node.number = number;
      node.inputs ??= [];
      node.users = [];
      for (const at of node.inputs) side.nodes[at].users.push(number);
    });
  }

  nodeOf(row, s = row.at.length - 1) {
    return row.at[s] == null ? null : this.sides[s].nodes[row.at[s]];
  }

  // The newest graph in which a row has a node.
  sideOf(row) {
    return row.at.findLastIndex((at) => at != null);
  }

  // -- modules ---------------------------------------------------------------

  // Rows that stand together and are in the same module become one entry.
  fold() {
    const root = { items: [], depth: -1, open: true, first: 0, last: this.rows.length - 1 };
    let inside = [root];
    for (const row of this.rows) {
      const path = this.modulesAround(row);
      let same = 0;
      while (same < path.length && inside[same + 1]?.name === path[same].name) same++;
      inside.length = same + 1;
      for (const module of path.slice(same)) {
        const outer = inside.at(-1);
        const made = { ...module, items: [], outer, depth: outer.depth + 1, open: false, first: row.number };
        outer.items.push(made);
        inside.push(made);
      }
      const outer = inside.at(-1);
      row.item = { row, outer, depth: outer.depth + 1 };
      outer.items.push(row.item);
      for (const module of inside) {
        module.last = row.number;
        module.changed ||= Boolean(row.mark);
      }
    }
    return root;
  }

  modulesAround(row) {
    const s = this.sideOf(row);
    const { groups } = this.sides[s];
    const path = [];
    for (let at = this.nodeOf(row, s).group; at >= 0; at = groups[at].in) path.unshift(groups[at]);
    return path;
  }

  // At first: modules in which something changed, or as many as fit a screen.
  openFirst() {
    let level = this.root.items.filter((item) => item.items);
    let shown = this.root.items.length;
    while (level.length) {
      const more = level.reduce((sum, module) => sum + module.items.length, 0);
      const fits = shown + more <= 40;
      for (const module of level) module.open = this.sides[1] ? module.changed : fits;
      if (!fits && !this.sides[1]) break;
      shown += more;
      level = level.flatMap((module) => module.items.filter((item) => item.items));
    }
  }

  openAll(open) {
    const visit = (module) => {
      for (const item of module.items) {
        if (!item.items) continue;
        item.open = open;
        visit(item);
      }
    };
    visit(this.root);
    this.lay();
  }

  // Open all modules around a row; returns the number of its entry.
  reveal(row) {
    let hidden = false;
    for (let outer = row.item.outer; outer !== this.root; outer = outer.outer) {
      hidden ||= !outer.open;
      outer.open = true;
    }
    if (hidden) this.lay();
    return row.item.number;
  }

  // -- entries ---------------------------------------------------------------

  // List the entries that are not in a closed module.
  lay() {
    this.entries = [];
    this.entryOfRow = new Int32Array(this.rows.length);
    const visit = (module) => {
      module.items.forEach((item, place) => {
        item.number = this.entries.length;
        item.place = place;
        item.edges = null;
        this.entries.push(item);
        if (item.row) {
          this.entryOfRow[item.row.number] = item.number;
        } else if (item.open) {
          visit(item);
        } else {
          this.entryOfRow.fill(item.number, item.first, item.last + 1);
        }
      });
    };
    visit(this.root);
  }

  // The rows in an entry; an open module has none of its own.
  rowsOf(item) {
    if (item.row) return [item.row];
    return item.open ? [] : this.rows.slice(item.first, item.last + 1);
  }

  // In one graph, the entries that an entry takes values from, and gives to.
  edges(item, s) {
    item.edges ??= this.sides.map(() => null);
    item.edges[s] ??= this.findEdges(item, s);
    return item.edges[s];
  }

  findEdges(item, s) {
    const { nodes } = this.sides[s];
    const from = new Set();
    const to = new Set();
    for (const row of this.rowsOf(item)) {
      const node = row.at[s] == null ? null : nodes[row.at[s]];
      for (const at of node?.inputs ?? []) from.add(this.entryOfRow[nodes[at].row.number]);
      for (const at of node?.users ?? []) to.add(this.entryOfRow[nodes[at].row.number]);
    }
    from.delete(item.number);
    to.delete(item.number);
    return { from: [...from], to: [...to].sort((a, b) => a - b) };
  }

  // Sums over the nodes of a module, in the newest graph.
  totals(module) {
    if (module.totals) return module.totals;
    const s = this.sides.length - 1;
    const counts = { nodes: 0, bytes: 0, ms: 0, weights: 0, notes: [], marks: {} };
    const seen = new Set();
    for (const row of this.rows.slice(module.first, module.last + 1)) {
      if (row.mark) counts.marks[row.mark] = (counts.marks[row.mark] ?? 0) + 1;
      const node = this.nodeOf(row, s);
      if (!node) continue;
      counts.nodes++;
      counts.bytes += node.bytes ?? 0;
      counts.ms += node.ms ?? 0;
      for (const [at, value] of (node.notes ?? []).entries()) {
        if (typeof value === "number") counts.notes[at] = (counts.notes[at] ?? 0) + value;
      }
      if (!seen.has(node.target)) counts.weights += node.weights ?? 0;
      seen.add(node.target);
      counts.type = node.type;
    }
    return (module.totals = counts);
  }

  // -- search ----------------------------------------------------------------

  // The numbers of the rows that have all words of a text, in order.
  search(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    this.texts ??= this.rows.map((row) => this.textOf(row));
    const has = (row) => words.every((word) => this.texts[row.number].includes(word));
    return this.rows.filter(has).map((row) => row.number);
  }

  textOf(row) {
    const parts = row.at.map((at, s) => {
      const node = at == null ? null : this.sides[s].nodes[at];
      if (!node) return "";
      const frames = this.sides[s].stacks[node.stack] ?? [];
      const lines = frames.map(([file, line, , code]) => `${file}:${line} ${code}`);
      return [node.name, node.op, node.target, node.call, node.type, node.module, ...lines].join("\n");
    });
    return [...parts, ...this.modulesAround(row).map((each) => `${each.name} ${each.kind}`)].join("\n").toLowerCase();
  }
}
