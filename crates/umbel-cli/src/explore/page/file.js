// @ts-check
// The tab with the files: their facts, a picture of their bits, and how much two of them share.

import { base, field, make } from "./facts.js";
import { Picture } from "./picture.js";
import * as language from "./language.js";
import { ask, send, Unreachable } from "./server.js";
import { text } from "./language.js";

/** @type {import("./app.js").Page} */
let page;
/** The facts of all files, once they are known. */
let all = /** @type {any[] | null} */ (null);
let comparison = /** @type {any} */ (null);
/** The pictures, by the path of their file. */
const pictures = /** @type {Map<string, Picture>} */ (new Map());

const place = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const side = (/** @type {"left" | "right"} */ name) => /** @type {HTMLSelectElement} */ (document.getElementById(`compare-${name}`));

/** The facts in their order, and how readers see them. */
const FACTS = /** @type {[string, (value: any, facts: any) => string][]} */ ([
  ["kind", (value) => value],
  ["holds", (value) => value],
  ["format", (value) => value],
  ["capacity", (value) => language.number(value)],
  ["count", (value) => language.number(value)],
  ["estimated_count", (value, facts) => (facts.estimated_count_error ? `${language.number(Math.round(value))} ± ${language.number(facts.estimated_count_error, 2)}` : language.number(Math.round(value)))],
  ["headroom", (value) => language.number(value)],
  ["fill", (value) => language.percent(value)],
  ["fpr_now", (value) => language.percent(value)],
  ["fpr_target", (value) => language.percent(value)],
  ["bits", (value) => language.number(value)],
  ["bits_per_key", (value) => language.number(value, 4)],
  ["hashes", (value) => language.number(value)],
  ["bytes", (value) => language.size(value)],
  ["file_bytes", (value) => language.size(value)],
  ["hash", (value) => value],
  ["seed", (value) => String(value)],
  ["key_tag", (value) => value],
  ["checksums", (value) => text("file.checksums.hold", { count: language.number(value) })],
]);

/** Returns all files with their facts, and asks for them if they are not known. */
export async function known() {
  if (!all) {
    try {
      all = (await ask("files", {})).files;
      page.report(null);
    } catch (error) {
      if (error instanceof Unreachable) page.report(error);
      return [];
    }
  }
  return all ?? [];
}

async function refresh() {
  await known();
  show();
  if ((all?.length ?? 0) > 1) await compare();
}

async function compare() {
  const [left, right] = [Number(side("left").value), Number(side("right").value)];
  try {
    comparison = await ask("compare", { left, right });
  } catch (error) {
    if (error instanceof Unreachable) page.report(error);
  }
  showComparison();
}

function show() {
  if (!all) return;
  const list = place("files");
  const cards = all.map((facts, number) => card(facts, number));
  if (!all.length) cards.push(make("p", { class: "notice" }, text("file.none")));
  list.replaceChildren(...cards);
  place("comparison").hidden = all.length < 2;
  for (const [name, first] of /** @type {["left" | "right", number][]} */ ([["left", 0], ["right", 1]])) {
    const select = side(name);
    const before = select.value || String(first);
    select.replaceChildren(...all.map((facts, number) => make("option", { value: String(number) }, base(facts.path))));
    select.value = before;
  }
  showComparison();
}

function card(/** @type {any} */ facts, /** @type {number} */ number) {
  const made = make("article", { class: "file", "data-file": facts.path });
  made.append(make("h3", {}, base(facts.path)), make("p", { class: "faint path" }, facts.path));
  if (facts.error) {
    made.append(make("p", { class: "error" }, facts.error));
    return made;
  }
  made.append(make("p", { class: "result" }, sentence(facts)));
  const list = make("dl", { class: "facts" });
  for (const [name, format] of FACTS) {
    const value = facts[name];
    if (value === undefined || value === null) continue;
    list.append(make("div", {}, make("dt", {}, text(`fact.${name}`)), field("dd", name, value, format(value, facts))));
  }
  for (const [name, value] of Object.entries(facts.details ?? {})) {
    list.append(make("div", {}, make("dt", {}, name.replaceAll("_", " ")), field("dd", name, value, language.number(Number(value), 6))));
  }
  for (const [name, value] of Object.entries(facts.meta ?? {})) {
    list.append(make("div", {}, make("dt", {}, name), make("dd", {}, String(value))));
  }
  made.append(list);
  if (facts.format === "umbel") {
    const picture = pictures.get(facts.path) ?? new Picture(number, (error) => page.report(error));
    pictures.set(facts.path, picture);
    made.append(picture.element);
    picture.show();
  }
  return made;
}

/** Returns a sentence about how full a filter is. */
function sentence(/** @type {any} */ facts) {
  const keys = facts.estimated_count ?? facts.count;
  if (keys === undefined || !facts.capacity) return text("file.sentence.plain", { kind: facts.kind ?? facts.format, memory: language.size(facts.bytes ?? facts.file_bytes ?? 0), rate: language.percent(facts.fpr_now ?? 0) });
  return text("file.sentence", {
    kind: facts.kind ?? facts.format,
    keys: language.number(Math.round(keys)),
    capacity: language.number(facts.capacity),
    rate: language.percent(facts.fpr_now),
  });
}

function showComparison() {
  const result = place("compared");
  if (!comparison) return result.replaceChildren();
  if (comparison.error) return result.replaceChildren(make("p", { class: "error" }, comparison.error));
  const list = make("dl", { class: "facts" });
  const plusMinus = (/** @type {string} */ name, /** @type {(value: number) => string} */ format) => `${format(comparison[name])} ± ${format(comparison[`${name}_error`])}`;
  const whole = (/** @type {number} */ value) => language.number(Math.round(value));
  const share = (/** @type {number} */ value) => language.percent(value, 4);
  for (const [name, format] of /** @type {[string, (value: number) => string][]} */ ([
    ["left_count", whole], ["right_count", whole], ["intersection", whole], ["union", whole],
    ["jaccard", share], ["left_in_right", share], ["right_in_left", share],
  ])) {
    list.append(make("div", {}, make("dt", {}, text(`compare.${name}`)), field("dd", name, comparison[name], plusMinus(name, format))));
  }
  result.replaceChildren(list);
}

/** Sends files that were dropped on the page or chosen, one after the other. */
async function take(/** @type {File[]} */ dropped) {
  const note = place("drop-note");
  note.classList.remove("error");
  for (const file of dropped) {
    note.textContent = text("file.dropping", { name: file.name });
    try {
      const answer = await send(file);
      note.textContent = answer.error ?? text("file.dropped", { name: file.name });
      note.classList.toggle("error", Boolean(answer.error));
      page.report(null);
      if (answer.error) break;
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      note.textContent = "";
      page.report(error);
      break;
    }
  }
  all = null;
  await refresh();
}

/** @type {import("./app.js").Tab} */
export const files = {
  start(frame) {
    page = frame;
    for (const name of /** @type {("left" | "right")[]} */ (["left", "right"])) side(name).addEventListener("change", compare);
    const chooser = /** @type {HTMLInputElement} */ (document.getElementById("file-drop"));
    chooser.addEventListener("change", () => {
      take([...(chooser.files ?? [])]);
      chooser.value = "";
    });
    addEventListener("dragover", (event) => {
      event.preventDefault();
      place("drop").classList.add("over");
    });
    addEventListener("dragleave", () => place("drop").classList.remove("over"));
    addEventListener("drop", (event) => {
      event.preventDefault();
      place("drop").classList.remove("over");
      page.show("file");
      take([...(event.dataTransfer?.files ?? [])]);
    });
    language.onChange(show);
  },
  open() {
    // A file may have changed.
    all = null;
    refresh();
  },
};
