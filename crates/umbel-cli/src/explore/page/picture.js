// @ts-check
// A picture of the bits of a filter: how full each part is, down to single bits.

import { make } from "./facts.js";
import * as language from "./language.js";
import { latest } from "./server.js";
import { text } from "./language.js";

const COLUMNS = 64;
const ROWS = 16;
const ZOOM = 16;

export class Picture {
  /** @type {any} */
  #answer = null;
  #start = 0;
  /** @type {number | null} */
  #end = null;
  #ask;

  constructor(/** @type {number} */ file, /** @type {(error: Error) => void} */ fail) {
    this.file = file;
    this.canvas = /** @type {HTMLCanvasElement} */ (make("canvas", { width: String(COLUMNS), height: String(ROWS), role: "img" }));
    this.caption = make("figcaption", {});
    this.buttons = Object.fromEntries(["in", "out", "left", "right"].map((name) => {
      const button = make("button", { type: "button", class: "copy" });
      button.addEventListener("click", () => this.#move(name));
      return [name, /** @type {HTMLButtonElement} */ (button)];
    }));
    this.element = make("figure", { class: "bits" }, this.caption, this.canvas, make("div", { class: "row" }, ...Object.values(this.buttons)));
    this.#ask = latest("picture", (answer) => { this.#answer = answer; this.#draw(); }, fail);
    this.canvas.addEventListener("click", (event) => {
      const box = this.canvas.getBoundingClientRect();
      const column = Math.floor(((event.clientX - box.left) / box.width) * COLUMNS);
      const row = Math.floor(((event.clientY - box.top) / box.height) * ROWS);
      this.#zoom((row * COLUMNS + column + 0.5) / (COLUMNS * ROWS));
    });
  }

  show() {
    if (this.#answer) this.#draw();
    const end = this.#end === null ? {} : { end: this.#end };
    this.#ask({ file: this.file, start: this.#start, cells: COLUMNS * ROWS, ...end });
  }

  /** Zooms in around a place, which is a share of the part that is shown. */
  #zoom(/** @type {number} */ share) {
    const { start, end } = this.#answer;
    const span = Math.max(Math.ceil((end - start) / ZOOM), COLUMNS * ROWS);
    this.#part(Math.round(start + share * (end - start) - span / 2), span);
  }

  /** Shows a part, or the nearest one that exists. */
  #part(/** @type {number} */ start, /** @type {number} */ span) {
    const { bits } = this.#answer;
    const length = Math.min(span, bits);
    this.#start = Math.max(0, Math.min(start, bits - length));
    this.#end = this.#start + length;
    this.show();
  }

  #move(/** @type {string} */ name) {
    if (!this.#answer) return;
    const { start, end } = this.#answer;
    const span = end - start;
    if (name === "in") return this.#zoom(0.5);
    if (name === "out") return this.#part(Math.round((start + end - span * ZOOM) / 2), span * ZOOM);
    this.#part(start + (name === "left" ? -span : span), span);
  }

  #draw() {
    const { bits, start, end, fill } = this.#answer;
    const context = this.canvas.getContext("2d");
    if (!context) return;
    this.canvas.height = Math.max(1, Math.ceil(fill.length / COLUMNS));
    const colour = getComputedStyle(this.element).getPropertyValue("--accent");
    context.clearRect(0, 0, COLUMNS, this.canvas.height);
    fill.forEach((/** @type {number} */ share, /** @type {number} */ cell) => {
      context.globalAlpha = share;
      context.fillStyle = colour;
      context.fillRect(cell % COLUMNS, Math.floor(cell / COLUMNS), 1, 1);
    });
    const each = (end - start) / Math.max(1, fill.length);
    const values = { start: language.number(start), end: language.number(Math.max(start, end - 1)), bits: language.number(bits), each: language.number(Math.round(each)) };
    this.caption.textContent = text(each <= 1 ? "picture.bits" : "picture.parts", values);
    this.canvas.setAttribute("aria-label", this.caption.textContent);
    for (const [name, button] of Object.entries(this.buttons)) button.textContent = text(`picture.${name}`);
    this.buttons.in.disabled = each <= 1;
    this.buttons.out.disabled = end - start >= bits;
    this.buttons.left.disabled = start === 0;
    this.buttons.right.disabled = end >= bits;
  }
}
