// Runs the reader's program in Python, beside files of fx: see play.js.
import {loadPyodide} from "../made/play/pyodide.mjs";

const home = new URL("../made/play/", import.meta.url).href;

async function start() {
  const [python, archive] = await Promise.all([
    loadPyodide({indexURL: home}),
    fetch(`${home}fx.zip`).then((answer) => answer.arrayBuffer()),
  ]);
  python.unpackArchive(archive, "zip");
  return python.pyimport("playground.run").play;
}

const started = start();

onmessage = async ({data}) => {
  try {
    const play = await started;
    const before = performance.now();
    const said = JSON.parse(play(data.source, data.task));
    const seconds = (performance.now() - before) / 1000;
    postMessage({...said, id: data.id, seconds});
  } catch (error) {
    postMessage({id: data.id, error: String(error), printed: "", page: "",
      nodes: [], code: "", problem: null});
  }
};
