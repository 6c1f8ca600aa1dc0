// @ts-check
// The tab with a filter that is small enough to see: keys are inserted, deleted and asked for, and
// each answer is explained by the keys that share its cells.

import { make } from "./facts.js";
import * as language from "./language.js";
import { latest } from "./server.js";
import { text } from "./language.js";

/** @typedef {"insert" | "delete" | "ask"} Act */
/** @typedef {{ act: Act, key: string }} Step */

/** The examples: settings, and steps that lead to the point. */
const EXAMPLES = /** @type {Record<string, { m: string, k: string, hash: string, kind: string, steps: [Act, string][] }>} */ ({
  empty: { m: "10", k: "3", hash: "", kind: "standard", steps: [] },
  positive: { m: "10", k: "3", hash: "x mod 10, 2x+3 mod 10, 3x+7 mod 10", kind: "standard", steps: [["insert", "2"], ["insert", "4"], ["insert", "9"], ["ask", "5"], ["ask", "12"]] },
  negative: { m: "10", k: "3", hash: "x mod 10, 2x+3 mod 10, 3x+7 mod 10", kind: "standard", steps: [["insert", "2"], ["insert", "4"], ["insert", "9"], ["delete", "4"], ["ask", "9"]] },
  counting: { m: "10", k: "3", hash: "x mod 10, 2x+3 mod 10, 3x+7 mod 10", kind: "counting", steps: [["insert", "2"], ["insert", "4"], ["insert", "9"], ["delete", "4"], ["ask", "9"]] },
  flowers: { m: "32", k: "3", hash: "", kind: "standard", steps: [["insert", "rose"], ["insert", "lily"], ["insert", "daisy"], ["insert", "tulip"], ["ask", "rose"], ["ask", "orchid"]] },
});

/** @type {import("./app.js").Page} */
let page;
let steps = /** @type {Step[]} */ ([]);
/** The last answer of the server, and the number of steps that it is about. */
let shown = /** @type {any} */ (null);

const place = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const value = (/** @type {string} */ id) => /** @type {HTMLInputElement} */ (document.getElementById(id)).value;
const write = (/** @type {string} */ id, /** @type {string} */ content) => {
  /** @type {HTMLInputElement} */ (document.getElementById(id)).value = content;
};

const play = latest("toy", (answer) => { page.report(null); take(answer); }, (error) => page.report(error));

/** Shows the filter after all steps. */
function refresh() {
  const settings = { m: value("toy-m"), k: value("toy-k"), hash: value("toy-hash"), kind: value("toy-kind") };
  page.remember("toy", { ...settings, steps: steps.map(({ act, key }) => `${act[0]}${key}`).join(",") });
  play({ ...settings, steps: steps.map(({ act, key }) => [act, key]) });
}

function take(/** @type {any} */ answer) {
  if (answer.error) {
    // A step that cannot be done is not kept.
    if (answer.step !== undefined) steps = steps.slice(0, answer.step);
    shown = { ...shown, error: answer.error };
  } else {
    shown = answer;
  }
  show();
}

function act(/** @type {Act} */ name) {
  const key = value("toy-key").trim();
  if (!key) {
    place("toy-key").focus();
    return;
  }
  steps = [...steps, { act: name, key }];
  refresh();
  /** @type {HTMLInputElement} */ (place("toy-key")).select();
}

/** Joins names as a sentence does. */
function list(/** @type {(string | number)[]} */ names) {
  return new Intl.ListFormat(language.current(), { type: "conjunction" }).format(names.map(String));
}

/** Returns why the last step had its result. */
function why(/** @type {any} */ last) {
  const { act: name, key, answer, changed } = last;
  const values = { key, positions: list(last.positions), cells: list(last.refused ?? []), keys: list(last.blame ?? []), count: changed };
  if (name === "insert") return text(changed ? "toy.why.insert" : "toy.why.insert.nothing", values);
  if (name === "delete") {
    if (!last.done) return text("toy.why.delete.refused", values);
    return text(last.blame?.length ? "toy.why.delete.shared" : "toy.why.delete", values);
  }
  if (answer === "false-negative" && !last.blame?.length) return text("toy.why.false-negative.unknown", values);
  return text(`toy.why.${answer}`, values);
}

function show() {
  if (!shown) return;
  const verdict = place("toy-answer");
  const reason = place("toy-why");
  const last = shown.last;
  verdict.dataset.value = last?.answer ?? "";
  verdict.textContent = shown.error ? "" : last ? text(last.answer ? `toy.answer.${last.answer}` : `toy.done.${last.act}`, { key: last.key }) : "";
  reason.textContent = shown.error ?? (last ? why(last) : text("toy.start"));
  reason.classList.toggle("error", Boolean(shown.error));
  verdict.parentElement?.setAttribute("data-answer", shown.error ? "" : (last?.answer ?? ""));
  if (!shown.cells) return;
  place("toy-cells").replaceChildren(...shown.cells.map(cell));
  place("toy-cells").classList.toggle("many", shown.cells.length > 64);
  const set = shown.cells.filter((/** @type {any} */ one) => one.value > 0).length;
  place("toy-state").textContent = text("toy.state", {
    members: shown.members.length ? list(shown.members) : text("toy.nobody"),
    set, m: shown.cells.length, k: shown.hashes, rate: language.percent((set / shown.cells.length) ** shown.hashes, 3),
  });
  place("toy-steps").replaceChildren(...steps.map((step, number) => make("li", {}, text(`toy.step.${step.act}`, { key: step.key }), shown.answers?.[number] ? ` ${text(`toy.answer.${shown.answers[number]}`, { key: step.key })}` : "")));
}

function cell(/** @type {any} */ one, /** @type {number} */ number) {
  const classes = [one.value > 0 ? "one" : "zero", one.touch ?? ""].join(" ");
  const made = make("li", { "data-bit": String(number), "data-value": String(one.value), class: classes });
  made.append(make("span", { class: "where" }, String(number)), make("b", {}, String(one.value)), make("span", { class: "users" }, one.keys.join(", ")));
  made.title = one.keys.length ? text("toy.cell", { bit: number, value: one.value, keys: list(one.keys) }) : text("toy.cell.unused", { bit: number, value: one.value });
  return made;
}

function load(/** @type {string} */ name) {
  const example = EXAMPLES[name];
  if (!example) return;
  write("toy-m", example.m);
  write("toy-k", example.k);
  write("toy-hash", example.hash);
  write("toy-kind", example.kind);
  steps = example.steps.map(([act, key]) => ({ act, key }));
  refresh();
}

/** @type {import("./app.js").Tab} */
export const toy = {
  start(frame) {
    page = frame;
    for (const id of ["toy-m", "toy-k", "toy-hash", "toy-kind"]) place(id).addEventListener("change", refresh);
    place("toy-form").addEventListener("submit", (event) => {
      event.preventDefault();
      act("insert");
    });
    for (const name of /** @type {("ask" | "delete")[]} */ (["ask", "delete"])) {
      document.querySelector(`[data-action="toy-${name}"]`)?.addEventListener("click", () => act(name));
    }
    place("toy-undo").addEventListener("click", () => {
      steps = steps.slice(0, -1);
      refresh();
    });
    place("toy-clear").addEventListener("click", () => {
      steps = [];
      refresh();
    });
    const examples = place("toy-example");
    examples.addEventListener("change", () => load(value("toy-example")));
    language.onChange(() => {
      const before = value("toy-example") || "empty";
      examples.replaceChildren(...Object.keys(EXAMPLES).map((name) => make("option", { value: name }, text(`toy.example.${name}`))));
      write("toy-example", before);
      show();
    });
  },
  open(state) {
    for (const name of ["m", "k", "hash", "kind"]) {
      if (state.has(name)) write(`toy-${name}`, state.get(name) ?? "");
    }
    const acts = /** @type {Record<string, Act>} */ ({ i: "insert", d: "delete", a: "ask" });
    const written = (state.get("steps") ?? "").split(",").filter((step) => acts[step[0]] && step.length > 1);
    if (state.has("steps")) steps = written.map((step) => ({ act: acts[step[0]], key: step.slice(1) }));
    refresh();
  },
};
