// Runs the reader's program in Python, beside files of fx: see play.js.
import {loadPyodide} from "../made/play/pyodide.mjs";

const home = new URL("../made/play/", import.meta.url).href;

// Pyodide never ends if a file does not come, so that the page fetches the
// files, which it also keeps, and sends them with each question.
async function start(parts) {
  const {fetch} = self;
  self.fetch = async (address, options) => {
    const part = parts[String(address).split("/").at(-1)];
    return part ? new Response(part) : fetch(address, options);
  };
  const python = await loadPyodide({indexURL: home});
  python.unpackArchive(await parts["fx.zip"].arrayBuffer(), "zip");
  return python;
}
let started = null;

async function course(python, archive) {
  python.unpackArchive(await archive.arrayBuffer(), "zip", {extractDir: "/course"});
}
let unpacked = null;

async function answer(python, data) {
  if (data.files) {
    await (unpacked ??= course(python, data.parts["course.zip"]));
    const {check_page} = python.pyimport("playground.exercise");
    return {...JSON.parse(check_page(data.stage, JSON.stringify(data.files))), error: ""};
  }
  const {play} = python.pyimport("playground.run");
  const before = performance.now();
  const said = JSON.parse(play(data.source));
  return {...said, seconds: (performance.now() - before) / 1000};
}

onmessage = async ({data}) => {
  try {
    const python = await (started ??= start(data.parts));
    postMessage({...await answer(python, data), id: data.id});
  } catch (error) {
    postMessage({lost: String(error)});
  }
};
