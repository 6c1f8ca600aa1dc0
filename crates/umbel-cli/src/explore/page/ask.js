// @ts-check
// The tab that asks the files: one key with all its probes, or many keys at once.

import { base, field, make } from "./facts.js";
import { known } from "./file.js";
import * as language from "./language.js";
import { ask, Unreachable } from "./server.js";
import { text } from "./language.js";

const SVG = "http://www.w3.org/2000/svg";

/** @type {import("./app.js").Page} */
let page;
/** The files, and the last answers to one key and to many. */
let files = /** @type {any[]} */ ([]);
let one = /** @type {any} */ (null);
let many = /** @type {any} */ (null);
let keys = /** @type {string[]} */ ([]);

const place = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** Asks the server, and returns nothing if it cannot be reached. */
async function answer(/** @type {string} */ question, /** @type {object} */ fields) {
  try {
    const found = await ask(question, fields);
    page.report(null);
    return found;
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    page.report(error);
    return null;
  }
}

function show() {
  place("ask-empty").hidden = files.length > 0;
  place("answers").replaceChildren(...files.map((facts, number) => card(facts, one?.files[number], many?.files[number])));
  place("ask-many-note").textContent = many ? text("ask.asked", { keys: language.number(many.keys) }) : "";
}

function card(/** @type {any} */ facts, /** @type {any} */ single, /** @type {any} */ several) {
  const made = make("article", { class: "file", "data-file": facts.path }, make("h3", {}, base(facts.path)));
  if (facts.error) made.append(make("p", { class: "error" }, facts.error));
  if (single) made.append(...explained(single, facts));
  if (several) made.append(...counted(several));
  if (!single && !several && !facts.error) made.append(make("p", { class: "faint" }, text("ask.nothing")));
  return made;
}

function explained(/** @type {any} */ single, /** @type {any} */ facts) {
  if (single.error) return [make("p", { class: "error" }, single.error)];
  const verdict = make("p", { class: `verdict ${single.member ? "yes" : "no"}` });
  const strong = field("strong", "member", single.member, text(single.member ? "ask.maybe" : "ask.no"));
  verdict.append(strong, " ", text(single.member ? "ask.maybe.why" : single.first_zero ? "ask.no.why" : "ask.no.plain", { key: single.key, probes: single.probes.length, zero: single.first_zero ?? 0 }));
  const list = make("ol", { class: "probes" });
  for (const probe of single.probes) {
    const item = make("li", { "data-probe": "", "data-bit": String(probe.bit), "data-value": String(probe.value), class: probe.value ? "one" : "zero" });
    const where = probe.bits > 1 ? text("ask.probe.bits", { bit: language.number(probe.bit), bits: probe.bits }) : language.number(probe.bit);
    item.append(make("span", { class: "where" }, where), make("b", {}, String(probe.value)));
    item.title = text("ask.probe", { bit: language.number(probe.bit), line: language.number(probe.line) });
    list.append(item);
  }
  const parts = [verdict];
  if (single.digest) parts.push(make("p", { class: "faint" }, text("ask.digest"), " ", field("code", "digest", single.digest, single.digest), ` (${single.hash})`));
  parts.push(list);
  if (facts.bits && single.probes.every((/** @type {any} */ probe) => !probe.section)) parts.push(strip(single.probes, facts.bits));
  return parts;
}

/** Draws where the probes lie in the filter. */
function strip(/** @type {any[]} */ probes, /** @type {number} */ bits) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 1000 34");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("class", "strip");
  svg.setAttribute("aria-label", text("ask.strip", { bits: language.number(bits) }));
  const shape = (/** @type {string} */ name, /** @type {Record<string, string | number>} */ attributes) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
    svg.append(made);
  };
  shape("rect", { x: 0, y: 8, width: 1000, height: 18, class: "body" });
  for (const probe of probes) {
    const at = 2 + (probe.bit / bits) * 996;
    shape("rect", { x: at - 1.5, y: 2, width: 3, height: 30, class: probe.value ? "one" : "zero" });
  }
  return svg;
}

function counted(/** @type {any} */ several) {
  if (several.error) return [make("p", { class: "error" }, several.error)];
  const found = several.found.flatMap((/** @type {boolean} */ is, /** @type {number} */ key) => (is ? [keys[key]] : []));
  const line = make("p", { class: "many" }, field("strong", "members", several.members, language.number(several.members)), ` ${text("ask.members", { keys: language.number(several.found.length) })}`);
  const details = make("details", {}, make("summary", {}, text("ask.which")), make("pre", {}, found.slice(0, 2000).join("\n")));
  return found.length ? [line, details] : [line];
}

/** @type {import("./app.js").Tab} */
export const answers = {
  start(frame) {
    page = frame;
    place("ask-one").addEventListener("submit", async (event) => {
      event.preventDefault();
      const key = /** @type {HTMLInputElement} */ (place("ask-key")).value;
      one = (await answer("why", { key })) ?? one;
      show();
    });
    place("ask-many").addEventListener("submit", async (event) => {
      event.preventDefault();
      const written = /** @type {HTMLTextAreaElement} */ (place("ask-keys")).value;
      const found = await answer("check", { keys: written });
      if (found) [many, keys] = [found, written.split("\n")];
      show();
    });
    language.onChange(show);
  },
  async open() {
    const before = files.map((facts) => facts.path).join("\n");
    files = await known();
    // Answers belong to the files that were asked.
    if (before !== files.map((facts) => facts.path).join("\n")) [one, many] = [null, null];
    show();
  },
};
