"use strict";

const STUB = 'raise NotImplementedError("stage ';

// <fx-exercise>: the files of a stage, to be written and checked in this page.
// What is typed is kept in this browser, and can be taken along.
class FxExercise extends FxPlay {
  label = "Your file";
  act = "Check";
  acting = "checking";
  parts = [...PARTS, "course.zip"];

  begin() {}

  // Of the first file in which something is to be written.
  first() {
    this.given = JSON.parse(this.dataset.files);
    this.files = {...this.given};
    const names = Object.keys(this.given);
    for (const name of names) {
      try {
        this.files[name] = localStorage.getItem(`fx/${name}`) ?? this.given[name];
      } catch {
        break; // this browser keeps nothing
      }
    }
    this.name = names.find((one) => this.files[one].includes(STUB)) ?? names[0];
    return this.files[this.name];
  }

  tools() {
    this.signs = document.createElement("ul");
    this.signs.className = "fx-signs";
    this.bar.after(this.signs);
    this.button("Download this file", () => this.download());
    this.button("Start this file again", () => {
      this.program = this.given[this.name];
      this.run();
    });
    const made = document.createElement("select");
    made.setAttribute("aria-label", "File");
    for (const name of Object.keys(this.given)) made.append(new Option(name));
    made.value = this.name;
    made.addEventListener("change", () => {
      this.keep();
      this.name = made.value;
      this.program = this.files[this.name];
      this.toStub();
    });
    this.bar.append(made);
  }

  async highlighted() {
    await super.highlighted();
    this.toStub();
  }

  // Show the first function that is not written.
  toStub() {
    const [before, after] = this.program.split(STUB, 2);
    if (!this.mirror || after === undefined) return;
    const line = before.split("\n").length - 20;
    this.mirror.scrollTo(0, this.mirror.heightAtLine(Math.max(line, 0), "local"));
  }

  keep() {
    this.files[this.name] = this.program;
    try {
      localStorage.setItem(`fx/${this.name}`, this.program);
    } catch {
      // This browser keeps nothing.
    }
  }

  question() {
    return {stage: this.dataset.stage, files: this.files};
  }

  get answer() {
    return this.signs;
  }

  show(said) {
    this.result.replaceChildren();
    this.verdict(said.signs ?? [], said.error);
    if (said.error) this.result.append(this.error(said.error));
    this.printed("The check says", said.printed);
    said.hints?.forEach((text, at) => {
      const made = document.createElement("details");
      const head = document.createElement("summary");
      head.textContent = `Hint ${at + 1} of ${said.hints.length}`;
      const inner = document.createElement("p");
      inner.textContent = text;
      made.append(head, inner);
      this.result.append(made);
    });
  }

  // The sign of each function, as in the terminal, and of all beside the button.
  verdict(signs, error) {
    const kinds = {"✓": "passed", "✗": "failed", "~": "failed"};
    this.signs.replaceChildren(...signs.map(([name, sign]) => {
      const made = document.createElement("li");
      made.dataset.kind = kinds[sign] ?? "";
      made.textContent = `${sign} ${name}`;
      return made;
    }));
    const count = (kind) => signs.filter(([, sign]) => kinds[sign] === kind).length;
    const [right, wrong] = [count("passed"), count("failed")];
    if (error?.startsWith("Stopped")) this.say("stopped");
    else if (!signs.some(([, sign]) => sign.trim())) this.say("not checked: see below", "failed");
    else if (wrong) this.say(`✗ ${wrong} wrong, ${right} of ${signs.length} right`, "failed");
    else this.say(`${right ? "✓ " : ""}${right} of ${signs.length} right`, right ? "passed" : "");
  }

  download() {
    this.keep();
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([this.program]));
    link.download = this.name.split("/").at(-1);
    link.click();
    URL.revokeObjectURL(link.href);
  }
}

if (!customElements.get("fx-exercise")) customElements.define("fx-exercise", FxExercise);
