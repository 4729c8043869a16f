"use strict";

// <fx-play>: a program that the reader may edit and run, in Python that runs
// in this browser.  The program and what it prints are in the page already
// (docs/machinery/playing.py); this adds the editor when the reader asks for it.
class FxPlay extends HTMLElement {
  static worker = null;
  static waiting = new Map();
  static asked = 0;

  connectedCallback() {
    if (this.querySelector(".fx-play-bar") || !this.dataset.megabytes) return;
    this.bar = document.createElement("div");
    this.bar.className = "fx-play-bar";
    this.open = this.button(
      `Edit and run it here (loads ${this.dataset.megabytes} MB, once)`,
      () => this.edit());
    this.insertBefore(this.bar, this.querySelector(".fx-recorded"));
    this.fromLink();
  }

  button(text, act) {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "md-button";
    made.textContent = text;
    made.addEventListener("click", act);
    this.bar.append(made);
    return made;
  }

  // What the reader has typed.
  get program() {
    return this.mirror ? this.mirror.getValue() : this.field.value;
  }

  set program(text) {
    if (this.mirror) this.mirror.setValue(text);
    else this.field.value = text;
  }

  async edit() {
    this.open.remove();
    this.field = document.createElement("textarea");
    this.field.value = this.linked ?? this.dataset.source;
    this.field.rows = this.field.value.split("\n").length + 2;
    this.field.spellcheck = false;
    this.field.setAttribute("aria-label", "Your program");
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run();
    });
    for (const made of this.querySelectorAll(".highlight, .fx-recorded")) {
      made.hidden = true;
    }
    this.bar.before(this.field);
    this.go = this.button("Run (Ctrl+Enter)", () => this.run());
    this.halt = this.button("Stop", () =>
      FxPlay.failed("Stopped. The next run loads Python anew."));
    this.halt.disabled = true;
    this.button("Copy a link to it", () => this.link());
    this.status = document.createElement("output");
    this.status.className = "fx-play-status";
    this.status.setAttribute("aria-live", "polite");
    this.bar.append(this.status);
    if (this.dataset.choice) this.choices();
    this.result = document.createElement("div");
    this.result.className = "fx-play-result";
    this.append(this.result);
    this.field.focus();
    const ran = this.run();
    await this.highlighted();
    return ran;
  }

  // An editor with colours and line numbers, where the site has its files.
  async highlighted() {
    const made = new URL(`${this.dataset.root}made/play/`, location.href);
    try {
      FxPlay.editor ??= FxPlay.load(made);
      await FxPlay.editor;
    } catch {
      return;
    }
    const focused = document.activeElement === this.field;
    this.mirror = CodeMirror.fromTextArea(this.field, {
      mode: "python", lineNumbers: true, indentUnit: 4, screenReaderLabel: "Your program",
      viewportMargin: Infinity,
      extraKeys: {
        "Ctrl-Enter": () => this.run(), "Cmd-Enter": () => this.run(),
        Tab: false, "Shift-Tab": false,
      },
    });
    if (focused) this.mirror.focus();
  }

  static async load(made) {
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = new URL("codemirror.css", made);
    document.head.append(style);
    for (const name of ["codemirror.js", "python.js"]) {
      await new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = new URL(name, made);
        script.addEventListener("load", resolve);
        script.addEventListener("error", reject);
        document.head.append(script);
      });
    }
  }

  // Other programs to begin with.
  choices() {
    const programs = JSON.parse(this.dataset.choice);
    const made = document.createElement("select");
    made.setAttribute("aria-label", "Another program");
    made.append(new Option("Another program…", ""));
    for (const title of Object.keys(programs)) made.append(new Option(title));
    made.addEventListener("change", () => {
      if (!made.value) return;
      this.program = programs[made.value];
      this.run();
    });
    this.bar.append(made);
  }

  // Put the program into the address, and that into the clipboard.
  async link() {
    const address = new URL(location.href);
    address.hash = "";
    address.searchParams.set("program", await FxPlay.packed(this.program));
    history.replaceState(history.state, "", address);
    try {
      await navigator.clipboard.writeText(address.href);
      this.status.textContent = "The link is copied.";
    } catch {
      this.status.textContent = "The link is in the address bar.";
    }
  }

  static async packed(text) {
    const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    return btoa(String.fromCharCode(...bytes))
      .replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  }

  static async unpacked(text) {
    const bytes = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const stream = new Blob([Uint8Array.from(bytes, (one) => one.charCodeAt(0))])
      .stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Response(stream).text();
  }

  // A program in the address is shown, and runs when the reader says so.
  async fromLink() {
    const packed = new URLSearchParams(location.search).get("program");
    if (!packed || !this.dataset.choice) return;
    try {
      this.linked = await FxPlay.unpacked(packed);
    } catch {
      return;
    }
    const shown = this.querySelector(".highlight code, code");
    if (shown) shown.textContent = this.linked;
    this.querySelector(".fx-recorded").hidden = true;
  }

  async run() {
    this.status.textContent = FxPlay.worker ? "running" : "loading Python";
    this.result.replaceChildren();
    this.go.disabled = true;
    this.halt.disabled = false;
    const said = await FxPlay.ask(this.dataset.root, {source: this.program});
    this.go.disabled = false;
    this.halt.disabled = true;
    this.status.textContent = said.seconds
      ? `done in ${said.seconds.toFixed(2)} s` : "done";
    this.show(said);
  }

  static ask(root, message) {
    if (!FxPlay.worker) {
      FxPlay.worker = new Worker(
        new URL(`${root}js/play-worker.mjs`, location.href), {type: "module"});
      FxPlay.worker.onmessage = ({data}) => FxPlay.answered(data);
      FxPlay.worker.onerror = (event) =>
        FxPlay.failed(`Python could not be loaded: ${event.message || "no file"}`);
    }
    const id = ++FxPlay.asked;
    return new Promise((resolve) => {
      const timer = setTimeout(
        () => FxPlay.failed("It took over a minute, and was stopped."), 60000);
      FxPlay.waiting.set(id, {resolve, timer});
      FxPlay.worker.postMessage({...message, id});
    });
  }

  static answered(said) {
    const {resolve, timer} = FxPlay.waiting.get(said.id);
    clearTimeout(timer);
    FxPlay.waiting.delete(said.id);
    resolve(said);
  }

  static failed(error) {
    FxPlay.worker?.terminate();
    FxPlay.worker = null;
    for (const id of [...FxPlay.waiting.keys()]) {
      FxPlay.answered(
        {id, error, printed: "", page: "", nodes: [], code: ""});
    }
  }

  show(said) {
    this.result.replaceChildren();
    if (said.error) this.error(said.error);
    if (said.page) this.viewer(said.page);
    if (said.nodes.length) this.nodes(said.nodes);
    this.text("Code", said.code);
    this.text("It prints", said.printed.trim());
  }

  error(text) {
    const made = document.createElement("p");
    made.className = "fx-play-said fx-wrong";
    made.setAttribute("role", "status");
    made.textContent = text;
    this.result.append(made);
  }

  text(title, text) {
    if (!text) return;
    const head = document.createElement("p");
    head.className = "fx-where";
    head.textContent = title;
    const box = document.createElement("div");
    box.className = "fx-scroll fx-output";
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", title);
    const inner = document.createElement("div");
    inner.className = "fx-text";
    inner.textContent = text;
    box.append(inner);
    this.result.append(head, box);
  }

  // The page that fx.show makes, in a frame that can reach nothing.
  viewer(page) {
    const made = document.createElement("iframe");
    made.title = "The graph";
    made.setAttribute("sandbox", "allow-scripts");
    made.srcdoc = page;
    this.result.append(made);
  }

  // The nodes, of which the slider shows as many as have been recorded so far.
  nodes(nodes) {
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    for (const title of ["node", "op", "does", "users"]) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = title;
      head.append(cell);
    }
    const body = table.createTBody();
    for (const node of nodes) {
      const row = body.insertRow();
      for (const text of [node.name, node.op, node.does, node.users.join(", ")]) {
        const cell = row.insertCell();
        if (!text) continue;
        const code = document.createElement("code");
        code.textContent = text;
        cell.append(code);
      }
    }
    const range = document.createElement("input");
    range.type = "range";
    range.min = "1";
    range.max = range.value = String(nodes.length);
    range.setAttribute("aria-label", "Step: how many nodes are recorded");
    range.addEventListener("input", () => {
      [...body.rows].forEach((row, at) => {
        row.classList.toggle("fx-later", at >= range.value);
        row.classList.toggle("fx-now", at === range.value - 1);
      });
    });
    const box = document.createElement("div");
    box.className = "fx-scroll";
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", "Nodes");
    box.append(table);
    this.result.append(range, box);
  }
}

if (!customElements.get("fx-play")) customElements.define("fx-play", FxPlay);
