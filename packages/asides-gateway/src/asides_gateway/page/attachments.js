// @ts-check
// Pictures and files beside the next question: chosen, dropped or pasted; named below the field, each with a button that removes it.

import { button, make } from "./dom.js";
import { count } from "./figures.js";

const MOST = 10;
const MOST_BYTES = 20 * 1024 * 1024;

export class Attachments {
  /** @param {(problem: string) => void} onProblem */
  constructor(onProblem) {
    this.onProblem = onProblem;
    /** @type {import("./shapes.js").Attached[]} */
    this.files = [];
    this.input = /** @type {HTMLInputElement} */ (make("input", {
      type: "file", multiple: true, hidden: true, tabIndex: -1, "aria-hidden": "true",
      onchange: () => { void this.add([...this.input.files ?? []]); this.input.value = ""; },
    }));
    this.open = button("quiet.attach", "Attach", () => this.input.click(), { title: "Attach pictures and files. They can also be dropped or pasted here" });
    this.list = make("ul.attached", { "aria-label": "Attached", hidden: true });
  }

  /** @param {File[]} files */
  async add(files) {
    for (const file of files) {
      const all = this.files.reduce((sum, each) => sum + each.bytes, 0);
      if (this.files.length >= MOST || all + file.size > MOST_BYTES) {
        this.onProblem(`${file.name} is too much: a question has at most ${MOST} files, of ${MOST_BYTES / 1024 / 1024} MB together.`);
        return;
      }
      const data = await readBase64(file);
      if (data === null) this.onProblem(`${file.name} cannot be read.`);
      else this.files.push({ name: file.name || "file", data, media_type: file.type, bytes: file.size });
    }
    this.draw();
  }

  /** Take the files away, for a question. */
  take() {
    const files = this.files;
    this.files = [];
    this.draw();
    return files;
  }

  /** @param {import("./shapes.js").Attached[]} files */
  put(files) {
    this.files = files;
    this.draw();
  }

  draw() {
    this.list.hidden = !this.files.length;
    this.list.replaceChildren(...this.files.map((file, place) => make("li", {},
      make("span", { dir: "auto" }, file.name), make("small", {}, count(file.bytes, "byte")),
      button("quiet", "×", () => { this.files.splice(place, 1); this.draw(); }, { "aria-label": `Remove ${file.name}` }))));
  }
}

/** The files of a drop or a paste. @param {DataTransfer | null} from @returns {File[]} */
export function listFiles(from) {
  return from ? [...from.files] : [];
}

/** @param {File} file @returns {Promise<string | null>} */
function readBase64(file) {
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.onerror = () => resolve(null);
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.readAsDataURL(file);
  });
}
