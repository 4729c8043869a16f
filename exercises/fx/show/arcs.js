// The arcs beside the list: from each value in view to its uses.

const WIDE = 44; // of the space for arcs, in pixels
const MOST = 40; // arcs that end at one entry

// How far an arc reaches out: longer ones pass behind shorter ones.
function reach(span) {
  return span === 1 ? 5 : Math.min(WIDE - 4, 5 + 5 * Math.ceil(Math.log2(span)));
}

// The path from the middle of one row to the middle of another one below.
function bracket(from, to, height) {
  const out = WIDE - reach(to - from);
  const top = from * height + height / 2;
  const bottom = to * height + height / 2;
  const round = Math.min(5, (WIDE - out) / 1.5);
  return (
    `M${WIDE} ${top + 2}H${out + round}q${-round} 0 ${-round} ${round}V${bottom - 2 - round}` +
    `q0 ${round} ${round} ${round}H${WIDE - 4}`
  );
}

function svg(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// The arcs of one graph with an end between two entries, as elements.
function arcs(graph, s, first, last, selected, height) {
  const made = [];
  const add = (from, to) => {
    const kind = to === selected ? "feeds" : from === selected ? "uses" : "";
    const y = to * height + height / 2 - 2;
    const group = svg("g", { class: kind });
    group.append(
      svg("path", { d: bracket(from, to, height) }),
      svg("path", { class: "head", d: `M${WIDE} ${y}l-5 -3v6z` }),
    );
    made.push(group);
  };
  for (let number = first; number <= last; number++) {
    const { from, to } = graph.edges(graph.entries[number], s);
    const above = from.filter((each) => each < number);
    for (const each of above.slice(0, MOST)) add(each, number);
    // One arc says that there are uses below the rows in view.
    const below = number === selected ? to.filter((each) => each > last).slice(0, MOST) : [to.find((each) => each > last)];
    for (const each of below) if (each !== undefined) add(number, each);
  }
  return made;
}
