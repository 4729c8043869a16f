"use strict";

const STUB = 'raise NotImplementedError("stage ';

// <fx-exercise>: the files of a stage, to be written and checked in this page.
// What is typed is kept in this browser, and can be taken along.
class FxExercise extends FxPlay {
  async edit() {
    this.given = JSON.parse(this.dataset.files);
    this.files = {...this.given};
    const names = Object.keys(this.given);
    for (const name of names) {
      this.files[name] = localStorage.getItem(`fx/${name}`) ?? this.given[name];
    }
    this.name = names.find((one) => this.files[one].includes(STUB)) ?? names[0];
    this.open.remove();
    this.field = document.createElement("textarea");
    this.field.value = this.files[this.name];
    this.field.rows = 24;
    this.field.spellcheck = false;
    this.field.setAttribute("aria-label", "Your file");
    this.bar.before(this.field);
    this.chooser();
    this.go = this.button("Check (Ctrl+Enter)", () => this.run());
    this.halt = this.button("Stop", () =>
      FxPlay.failed("Stopped. The next check loads Python anew."));
    this.halt.disabled = true;
    this.button("Download this file", () => this.download());
    this.button("Start this file again", () => {
      this.program = this.given[this.name];
      this.run();
    });
    this.status = document.createElement("output");
    this.status.className = "fx-play-status";
    this.status.setAttribute("aria-live", "polite");
    this.result = document.createElement("div");
    this.result.className = "fx-play-result";
    this.bar.append(this.status);
    this.append(this.result);
    const ran = this.run();
    await this.highlighted();
    this.toStub();
    return ran;
  }

  // Show the first function that is not written.
  toStub() {
    const [before, after] = this.program.split(STUB, 2);
    if (!this.mirror || after === undefined) return;
    const line = before.split("\n").length - 20;
    this.mirror.scrollTo(0, this.mirror.heightAtLine(Math.max(line, 0), "local"));
  }

  fromLink() {}

  chooser() {
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

  keep() {
    this.files[this.name] = this.program;
    localStorage.setItem(`fx/${this.name}`, this.program);
  }

  async run() {
    this.keep();
    this.status.textContent = FxPlay.worker ? "checking" : "loading Python";
    this.result.replaceChildren();
    this.go.disabled = true;
    this.halt.disabled = false;
    const asked = {stage: this.dataset.stage, files: this.files};
    const said = await FxPlay.ask(this.dataset.root, asked);
    this.go.disabled = false;
    this.halt.disabled = true;
    this.status.textContent = "done";
    this.show(said);
  }

  show(said) {
    this.result.replaceChildren();
    if (said.error) this.error(said.error);
    this.text("The check says", said.printed);
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
