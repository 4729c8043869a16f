"use strict";

// What Python for browsers fetches; its scripts the browser fetches itself.
const PARTS = ["pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json", "fx.zip"];

// <fx-play>: a program that the reader may edit and run, in Python that runs
// in this browser.  The program and what it prints are in the page already
// (docs/machinery/playing.py); this adds the editor when the reader asks for it.
class FxPlay extends HTMLElement {
  static worker = null;
  static waiting = new Map();
  static asked = 0;
  static files = new Map();
  label = "Your program";
  act = "Run";
  acting = "running";
  parts = PARTS;

  connectedCallback() {
    if (this.querySelector(".fx-play-bar") || !this.dataset.megabytes) return;
    this.bar = document.createElement("div");
    this.bar.className = "fx-play-bar";
    this.open = this.button(
      `Edit and run it here (loads ${this.dataset.megabytes} MB, once)`,
      () => this.edit());
    this.insertBefore(this.bar, this.querySelector(".fx-recorded"));
    this.begin();
  }

  disconnectedCallback() {
    clearTimeout(this.timer);
    for (const what of ["hashchange", "scroll", "storage"]) removeEventListener(what, this);
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
    this.keep();
  }

  // The editor, its buttons below it, and room for an answer.
  async edit() {
    this.open.remove();
    this.field = document.createElement("textarea");
    this.field.value = this.first();
    this.field.rows = Math.min(this.field.value.split("\n").length + 2, 24);
    this.field.spellcheck = false;
    this.field.setAttribute("aria-label", this.label);
    this.field.addEventListener("input", () => this.keep());
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run();
    });
    for (const made of this.querySelectorAll(".highlight, .fx-recorded, .fx-wrong")) {
      made.hidden = true;
    }
    this.bar.before(this.field);
    this.go = this.button(`${this.act} (Ctrl+Enter)`, () => this.run());
    this.halt = this.button("Stop", () =>
      FxPlay.failed(`Stopped. The next ${this.act.toLowerCase()} starts Python anew.`));
    this.halt.disabled = true;
    this.tools();
    this.status = document.createElement("output");
    this.status.className = "fx-play-status";
    this.status.setAttribute("aria-live", "polite");
    this.halt.after(this.status);
    this.result = document.createElement("div");
    this.result.className = "fx-play-result";
    this.append(this.result);
    this.field.focus({preventScroll: true});
    const ran = this.run();
    await this.highlighted();
    return ran;
  }

  first() {
    return this.text ?? this.dataset.source;
  }

  tools() {
    this.button("Copy a link to it", () => this.link());
    this.choices();
  }

  // An editor with colours and line numbers, where the site has its files.
  async highlighted() {
    const made = new URL(`${this.dataset.root}made/play/`, location.href);
    try {
      FxPlay.editor ??= FxPlay.load(made);
      await FxPlay.editor;
    } catch {
      FxPlay.editor = null;
      return;
    }
    const focused = document.activeElement === this.field;
    this.mirror = CodeMirror.fromTextArea(this.field, {
      mode: "python", lineNumbers: true, indentUnit: 4, screenReaderLabel: this.label,
      viewportMargin: Infinity,
      extraKeys: {
        "Ctrl-Enter": () => this.run(), "Cmd-Enter": () => this.run(),
        Tab: false, "Shift-Tab": false,
      },
    });
    this.mirror.on("change", () => this.keep());
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

  // Other programs to begin with, and those that had to make room here.
  choices() {
    const made = document.createElement("select");
    made.setAttribute("aria-label", "Another program");
    this.offer = (title, program) => made.append(new Option(title, program));
    this.offer("Another program…", "");
    for (const one of Object.entries(this.others)) this.offer(...one);
    this.drafts.forEach((one, at) => this.offer(`Yours, ${at + 1}`, one));
    made.addEventListener("change", () => {
      if (!made.value) return;
      this.lay(this.program);
      this.program = made.value;
      made.value = "";
      this.run();
    });
    this.bar.append(made);
  }

  // Put the program into the address, and that into the clipboard.
  async link() {
    this.linked = this.program;
    this.hash = `#program=${await FxPlay.packed(this.linked)}`;
    this.address(this.hash);
    try {
      await navigator.clipboard.writeText(location.href);
      this.say("The link is copied.", "passed");
    } catch {
      this.say("The link is in the address bar.", "passed");
    }
  }

  // What is behind `#` is not sent to a server.
  address(hash) {
    const address = new URL(location.href);
    address.hash = hash;
    history.replaceState(history.state, "", address);
  }

  // Edits outlive a reload; the address has the program as long as it is that.
  keep() {
    if (this.program === this.received) return;
    try {
      if (this.program === this.dataset.source) sessionStorage.removeItem(this.dataset.source);
      else sessionStorage.setItem(this.dataset.source, this.program);
    } catch {
      // This browser keeps nothing.
    }
    if (!this.hash || this.program === this.linked) return;
    this.hash = "";
    this.address("");
  }

  static async packed(text) {
    const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    return btoa(String.fromCharCode(...bytes))
      .replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  }

  static async unpacked(text) {
    const bytes = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const stream = new Blob([Uint8Array.from(bytes, (one) => one.charCodeAt(0))])
      .stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).text();
  }

  // A program in the address, or one that was typed here before, is shown,
  // and runs when the reader says so.
  async begin() {
    for (const what of ["hashchange", "scroll"]) addEventListener(what, this);
    const more = JSON.parse(this.dataset.choice || "{}");
    this.others = {"As the page has it": this.dataset.source, ...more};
    this.text = null;
    this.drafts = [];
    try {
      this.text = sessionStorage.getItem(this.dataset.source);
      const kept = sessionStorage.getItem(`drafts of ${this.dataset.source}`);
      this.drafts = JSON.parse(kept || "[]");
    } catch {
      // This browser keeps nothing.
    }
    await this.fromLink();
    if (this.text === null || this.field) return;
    const shown = this.querySelector(".highlight code, code");
    if (shown) shown.textContent = this.text;
    this.querySelector(".fx-recorded").hidden = true;
  }

  async fromLink() {
    const packed = /^#program=(.*)/.exec(location.hash)?.[1];
    if (packed === undefined || !this.dataset.choice) return;
    const typed = this.field ? this.program : this.text;
    try {
      this.text = await FxPlay.unpacked(packed);
    } catch {
      const told = this.error("The link is damaged: no program can be read from it. " +
        "Ask its sender to copy it once more.");
      this.bar.before(told);
      told.scrollIntoView({block: "nearest"});
      return;
    }
    this.hash = location.hash;
    if (typed !== this.text) this.lay(typed);
    this.linked = this.received = this.text;
    if (this.field) this.program = this.text;
    else if (this.drafts.length) this.open.after("Your own program is kept: it is in the list behind this button.");
  }

  // What was typed here can be chosen when something else takes its place.
  lay(typed) {
    const known = [null, this.received, ...Object.values(this.others), ...this.drafts];
    if (known.includes(typed)) return;
    this.drafts.push(typed);
    this.offer?.(`Yours, ${this.drafts.length}`, typed);
    try {
      sessionStorage.setItem(`drafts of ${this.dataset.source}`, JSON.stringify(this.drafts));
    } catch {
      // This browser keeps nothing.
    }
  }

  // Scrolling makes the theme write a heading into the address: see
  // `navigation.tracking`.
  handleEvent(event) {
    if (event.type === "hashchange") return this.fromLink();
    clearTimeout(this.timer);
    if (this.hash) this.timer = setTimeout(() => this.address(this.hash), 400);
  }

  say(text, kind = "") {
    this.status.textContent = text;
    this.status.dataset.kind = kind;
  }

  question() {
    return {source: this.program};
  }

  async run() {
    this.keep();
    this.say(FxPlay.worker ? this.acting : "loading Python");
    this.result.replaceChildren();
    this.go.disabled = true;
    this.halt.disabled = false;
    const text = this.program;
    const said = await FxPlay.ask(this.dataset.root, this.question(), this.parts);
    this.go.disabled = false;
    this.halt.disabled = true;
    this.show(said);
    // Who types on meanwhile is not moved.
    if (this.program !== text) return;
    for (const seen of [this.answer, this.bar]) seen?.scrollIntoView({block: "nearest"});
  }

  // What is to be in view after a run, below the buttons.
  get answer() {
    return this.result.firstElementChild;
  }

  static ask(root, message, parts) {
    const id = ++FxPlay.asked;
    return new Promise((resolve) => {
      FxPlay.waiting.set(id, {resolve});
      FxPlay.send(root, {...message, id}, parts);
    });
  }

  static async send(root, message, parts) {
    const files = {};
    try {
      for (const name of parts) files[name] = await FxPlay.file(root, name);
    } catch (error) {
      FxPlay.unloaded(error.message);
      return;
    }
    const asked = FxPlay.waiting.get(message.id);
    if (!asked) return; // stopped meanwhile
    if (!FxPlay.worker) {
      FxPlay.worker = new Worker(
        new URL(`${root}js/play-worker.mjs`, location.href), {type: "module"});
      FxPlay.worker.onmessage = ({data}) =>
        data.lost
          ? FxPlay.failed(`Python broke off, and will start anew: ${data.lost}`)
          : FxPlay.answered(data);
      FxPlay.worker.onerror = (event) =>
        FxPlay.unloaded(event.message || "a script did not come");
    }
    asked.timer = setTimeout(
      () => FxPlay.failed("Stopped, because it took over a minute."), 60000);
    FxPlay.worker.postMessage({...message, parts: files});
  }

  // A file that Python needs is fetched once, and kept for the next start.
  static async file(root, name) {
    if (!FxPlay.files.has(name)) {
      const answer = await fetch(new URL(`${root}made/play/${name}`, location.href));
      if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
      FxPlay.files.set(name, await answer.blob());
    }
    return FxPlay.files.get(name);
  }

  static answered(said) {
    const {resolve, timer} = FxPlay.waiting.get(said.id);
    clearTimeout(timer);
    FxPlay.waiting.delete(said.id);
    resolve(said);
  }

  static unloaded(why) {
    FxPlay.failed(`Python could not be loaded (${why}). Try it again when the network is back.`);
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
    const line = /^line \d+/.exec(said.error)?.[0];
    if (said.error.startsWith("Stopped")) this.say("stopped");
    else if (said.error) this.say(line ? `failed, ${line}` : "failed", "failed");
    else if (said.problem) this.say(`traced, but ${said.problem}`, said.problem.startsWith("no") ? "" : "failed");
    else this.say(`done in ${said.seconds.toFixed(2)} s`, "passed");
    this.result.replaceChildren();
    if (said.error) this.result.append(this.error(said.error));
    if (said.page) this.viewer(said.page);
    if (said.nodes.length) this.nodes(said.nodes);
    this.printed("Code", said.code);
    this.printed("It prints", said.printed.trim());
    if (this.result.children.length) return;
    this.printed("Nothing to show", "The program made no graph and printed nothing. " +
      "End it with fx.show(model, input),\nwhere input is a tensor that the model takes.");
  }

  error(text) {
    const made = document.createElement("p");
    made.className = "fx-play-said fx-wrong";
    made.setAttribute("role", "status");
    made.textContent = text;
    return made;
  }

  printed(title, text) {
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
