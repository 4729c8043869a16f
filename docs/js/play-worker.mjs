// Runs the reader's program in Python, beside files of fx: see play.js.
import {loadPyodide} from "../made/play/pyodide.mjs";

const home = new URL("../made/play/", import.meta.url).href;

async function start() {
  const [python, archive] = await Promise.all([
    loadPyodide({indexURL: home}),
    fetch(`${home}fx.zip`).then((answer) => answer.arrayBuffer()),
  ]);
  python.unpackArchive(archive, "zip");
  return python;
}

// The files of the course, and pytest, are fetched for the first check.
async function course(python) {
  const archive = await fetch(`${home}course.zip`).then((answer) => answer.arrayBuffer());
  python.unpackArchive(archive, "zip", {extractDir: "/course"});
}
let fetched = null;

async function check(python, stage, files) {
  await (fetched ??= course(python));
  const {check_page} = python.pyimport("playground.exercise");
  return JSON.parse(check_page(stage, JSON.stringify(files)));
}

const started = start();

onmessage = async ({data}) => {
  try {
    const python = await started;
    if (data.files) {
      const said = await check(python, data.stage, data.files);
      postMessage({...said, id: data.id, error: ""});
      return;
    }
    const {play} = python.pyimport("playground.run");
    const before = performance.now();
    const said = JSON.parse(play(data.source));
    const seconds = (performance.now() - before) / 1000;
    postMessage({...said, id: data.id, seconds});
  } catch (error) {
    postMessage({id: data.id, error: String(error), printed: "", page: "",
      nodes: [], code: ""});
  }
};
