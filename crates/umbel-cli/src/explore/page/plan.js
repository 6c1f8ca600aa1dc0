// @ts-check
// The tab with the plan: four linked parameters, all kinds side by side, and their curves.

import { Chart } from "./chart.js";
import * as language from "./language.js";
import { latest } from "./server.js";
import { text } from "./language.js";

/** @typedef {"n" | "p" | "m" | "k"} Name */

/** @type {Name[]} */
const NAMES = ["n", "p", "m", "k"];

/** The style of each kind in the charts. */
const STYLES = ["blocked", "standard", "fuse", "cuckoo", "quotient", "partitioned", "scalable", "counting", "variable-increment", "deletable", "aging", "floom", "literature"];

const CAPABILITIES = ["remove", "grow", "forget", "union", "intersect", "fold"];

/** The columns of the table of kinds that are fields of the report. */
const COLUMNS = /** @type {[string, (value: number, report: any) => string][]} */ ([
  ["bits_per_key", (value) => new Intl.NumberFormat(language.current(), { minimumFractionDigits: 2, maximumFractionDigits: 2 }).format(value)],
  ["bytes", (value) => language.size(value)],
  ["bits", (value) => language.number(value)],
  ["hashes", (value) => language.number(value)],
  ["lines_touched", (value) => language.number(value)],
  ["fpr", (value) => language.percent(value)],
]);

/** The texts of the inputs. */
const typed = /** @type {Record<Name, string>} */ ({ n: "1e6", p: "1%", m: "", k: "" });
/** The parameters in the order of their last change; the last two decide. */
let order = /** @type {Name[]} */ (["k", "m", "p", "n"]);
/** The kind that the reader chose, or nothing for the default. */
let kind = "";
/** The last answers. */
let plans = /** @type {any} */ (null);
let curves = /** @type {any} */ (null);

/** @type {import("./app.js").Page} */
let page;
/** @type {{ rate: Chart, size: Chart }} */
let charts;

const find = (/** @type {string} */ selector) => /** @type {HTMLElement} */ (document.querySelector(`[data-panel="plan"] ${selector}`));
const input = (/** @type {Name} */ name) => /** @type {HTMLInputElement} */ (find(`[data-input="${name}"]`));
const slider = (/** @type {Name} */ name) => /** @type {HTMLInputElement} */ (find(`[data-slider="${name}"]`));

/**
 * Returns the parameters that decide: the two that were changed last. Keys and hash functions alone,
 * or rate and hash functions, do not determine a size, so the third of them joins.
 * @returns {Name[]}
 */
function deciding() {
  const last = order.slice(-2);
  const withoutBits = last.includes("k") && !last.includes("m");
  return NAMES.filter((name) => last.includes(name) || (withoutBits && (name === "n" || name === "p")));
}

/** Returns the question for the server. */
function question() {
  const names = deciding();
  const given = Object.fromEntries(NAMES.map((name) => [name, names.includes(name) ? typed[name] : ""]));
  return { ...given, kind };
}

/** Reads a number as people write it, well enough to move a slider. */
function value(/** @type {Name} */ name) {
  const written = typed[name].trim();
  const [, digits, unit] = /^([\d._eE+/-]+)\s*(%|[a-zA-Z]*)$/.exec(written) ?? ["", "", ""];
  const [above, below] = digits.replaceAll("_", "").split("/");
  const number = Number(above) / Number(below ?? 1);
  const units = /** @type {Record<string, number>} */ ({ "": 1, "%": 0.01, k: 1e3, M: 1e6, G: 1e9, T: 1e12, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 });
  const plain = unit.replace(/B$/, "");
  const bits = name === "m" && unit.endsWith("B") ? 8 : 1;
  return number * (units[plain] ?? Number.NaN) * bits;
}

/** Writes the number of a slider as people would. */
function fromSlider(/** @type {Name} */ name, /** @type {number} */ place) {
  if (name === "k") return String(place);
  const rounded = Number((10 ** place).toPrecision(name === "p" ? 2 : 3));
  if (name === "p") return rounded >= 1e-4 ? `${Number((rounded * 100).toPrecision(2))}%` : rounded.toExponential().replace("e-", "e-");
  return String(Math.max(1, Math.round(rounded)));
}

/** Moves a slider to the number of its input, unless it is the one that is being moved. */
function moveSlider(/** @type {Name} */ name) {
  const control = slider(name);
  const number = value(name);
  if (control === document.activeElement || !(number > 0)) return;
  control.value = String(name === "k" ? number : Math.log10(number));
}

/** Takes a parameter that the reader has changed. */
function change(/** @type {Name} */ name, /** @type {string} */ written) {
  typed[name] = written;
  order = [...order.filter((other) => other !== name), name];
  refresh();
}

/** Asks for everything that follows from the parameters. */
function refresh() {
  const asked = question();
  page.remember("plan", asked);
  askPlan(asked);
  askCurves(asked);
}

const askPlan = latest("plan", (answer) => { plans = answer; page.report(null); showPlan(); }, (error) => page.report(error));
const askCurves = latest("curves", (answer) => { curves = answer; showCurves(); }, (error) => page.report(error));

/** Returns the report of the chosen kind, if there is one. */
function chosen() {
  const row = plans?.kinds?.find((/** @type {any} */ other) => other.asked === plans.chosen);
  return row && !row.error ? row : null;
}

function showPlan() {
  if (!plans) return;
  const report = chosen();
  const names = deciding();
  if (report) {
    // The other parameters follow.
    const followed = /** @type {Record<Name, string>} */ ({
      n: String(report.capacity),
      p: `${Number((report.fpr * 100).toPrecision(4))}%`,
      m: String(report.bits),
      k: String(report.hashes),
    });
    for (const name of NAMES) {
      if (!names.includes(name)) typed[name] = followed[name];
    }
  }
  for (const name of NAMES) showInput(name, names.includes(name), report);
  if (plans.kinds) showKinds();
  showResult(report);
  showCode();
}

function showInput(/** @type {Name} */ name, /** @type {boolean} */ isGiven, /** @type {any} */ report) {
  const field = input(name);
  const note = /** @type {HTMLElement} */ (document.getElementById(`plan-${name}-note`));
  const isWrong = plans.input === name;
  if (field !== document.activeElement || !isGiven) field.value = typed[name];
  field.closest(".input")?.classList.toggle("given", isGiven);
  field.setAttribute("aria-invalid", String(isWrong));
  note.classList.toggle("error", isWrong);
  note.textContent = isWrong ? plans.error : explained(name, isGiven, report);
  moveSlider(name);
}

/** Returns the line below an input: its number in words, and whether it is given. */
function explained(/** @type {Name} */ name, /** @type {boolean} */ isGiven, /** @type {any} */ report) {
  if (!report) return text(isGiven ? "plan.given" : "plan.follows");
  const facts = /** @type {Record<Name, string>} */ ({
    n: language.number(report.capacity),
    p: text("plan.note.p", { one: language.number(Math.round(1 / (isGiven ? report.fpr_target : report.fpr))) }),
    m: language.size(report.bits / 8),
    k: text("plan.note.k", { lines: report.lines_touched }),
  });
  return `${facts[name]} · ${text(isGiven ? "plan.given" : "plan.follows")}`;
}

function showResult(/** @type {any} */ report) {
  const place = /** @type {HTMLElement} */ (document.getElementById("plan-result"));
  const row = plans.kinds?.find((/** @type {any} */ other) => other.asked === plans.chosen);
  place.classList.toggle("error", !report);
  if (!report) {
    place.textContent = plans.input ? text("plan.result.mistake") : `${plans.chosen ?? ""}: ${row?.error ?? plans.error}`;
    return;
  }
  place.textContent = text(report.lines_touched === 1 ? "plan.result.one" : "plan.result", {
    kind: report.kind,
    keys: language.number(report.capacity),
    rate: language.percent(report.fpr),
    memory: language.size(report.bytes),
    bits: COLUMNS[0][1](report.bits_per_key, report),
    lines: report.lines_touched,
  });
  if (report.kind !== report.asked) place.textContent += ` ${text("plan.result.instead", { asked: report.asked })}`;
}

function showKinds() {
  const body = /** @type {HTMLElement} */ (document.getElementById("plan-kinds"));
  const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.closest("tr")?.dataset.kind;
  body.replaceChildren(...plans.kinds.map(kindRow));
  if (focused) /** @type {HTMLElement | null} */ (body.querySelector(`[data-kind="${focused}"] input`))?.focus();
}

function kindRow(/** @type {any} */ report) {
  const row = document.createElement("tr");
  row.dataset.kind = report.asked;
  row.classList.toggle("chosen", report.asked === plans.chosen);
  const head = document.createElement("th");
  head.scope = "row";
  const label = document.createElement("label");
  const radio = document.createElement("input");
  Object.assign(radio, { type: "radio", name: "kind", value: report.asked, checked: report.asked === plans.chosen });
  radio.addEventListener("change", () => {
    kind = report.asked;
    refresh();
  });
  label.append(radio, report.kind === report.asked ? report.asked : text("plan.as", { asked: report.asked, kind: report.kind }));
  head.append(label);
  row.append(head);
  if (report.error) {
    const cell = document.createElement("td");
    cell.colSpan = COLUMNS.length + 1;
    cell.className = "error";
    cell.textContent = report.error;
    row.append(cell);
    return row;
  }
  for (const [field, format] of COLUMNS) {
    const cell = document.createElement("td");
    cell.className = "n";
    cell.dataset.field = field;
    cell.dataset.value = String(report[field]);
    cell.textContent = format(report[field], report);
    row.append(cell);
  }
  const can = document.createElement("td");
  const able = CAPABILITIES.filter((name) => report.can[name]).map((name) => text(`can.${name}`));
  can.textContent = report.can.add ? able.join(", ") : text("can.nothing");
  row.append(can);
  return row;
}

function showCode() {
  const lead = /** @type {HTMLElement} */ (document.getElementById("plan-code-lead"));
  lead.textContent = plans.code?.error ?? text(plans.code ? "plan.code.lead" : "plan.code.none", { kind: plans.chosen ?? "" });
  lead.classList.toggle("error", Boolean(plans.code?.error));
  for (const field of ["command", "rust", "python"]) {
    const place = find(`[data-field="${field}"]`);
    const line = plans.code?.[field] ?? "";
    place.textContent = line;
    place.dataset.value = line;
  }
}

function showCurves() {
  if (!curves?.rate_by_keys || !plans?.kinds) return;
  const report = chosen();
  const series = (/** @type {any} */ curve) => ({
    name: curve.kind,
    points: curve.points,
    style: Math.max(0, STYLES.indexOf(curve.kind)),
    strong: curve.kind === plans.chosen,
  });
  const rates = curves.rate_by_keys.map(series);
  const all = rates.flatMap((/** @type {any} */ curve) => curve.points);
  const span = (/** @type {number} */ axis) => all.map((/** @type {any} */ point) => point[axis]).filter((/** @type {number} */ number) => number > 0);
  const percent = (/** @type {number} */ rate) => language.percent(rate, 3);
  const tick = (/** @type {number} */ rate) => (rate < 0.9e-5 ? rate.toExponential(0) : percent(rate));
  if (all.length) {
    const lowest = Math.max(Math.min(...span(1)), 1e-12);
    charts.rate.show({
      label: text("plan.chart.rate"),
      x: { label: text("plan.axis.keys"), log: true, range: [Math.min(...span(0)), Math.max(...span(0))], tick: language.short, format: (keys) => text("plan.keys", { keys: language.number(Math.round(keys), 4) }) },
      y: { label: text("plan.axis.rate"), log: true, range: [lowest, Math.min(1, Math.max(...span(1)) * 1.3)], tick, format: percent },
      series: rates,
      mark: report && rates.some((/** @type {any} */ curve) => curve.strong) ? [report.capacity, report.fpr] : null,
    });
  }
  const sizes = curves.size_by_rate.filter((/** @type {any} */ curve) => curve.points.length).map(series);
  const bits = sizes.flatMap((/** @type {any} */ curve) => curve.points.map((/** @type {any} */ point) => point[1]));
  if (!bits.length) return;
  charts.size.show({
    label: text("plan.chart.size"),
    x: { label: text("plan.axis.rate"), log: true, range: [0.3, 1e-8], tick, format: percent },
    y: { label: text("plan.axis.bits"), log: false, range: [0, Math.min(50, Math.max(...bits))], tick: (value) => language.number(value), format: (value) => language.number(value, 3) },
    series: sizes,
    mark: report ? [report.fpr, report.bits_per_key] : null,
  });
}

/** @type {import("./app.js").Tab} */
export const plan = {
  start(frame) {
    page = frame;
    charts = { rate: new Chart(find("#chart-rate")), size: new Chart(find("#chart-size")) };
    for (const name of NAMES) {
      input(name).addEventListener("input", () => change(name, input(name).value));
      input(name).addEventListener("change", () => moveSlider(name));
      slider(name).addEventListener("input", () => {
        input(name).value = fromSlider(name, Number(slider(name).value));
        change(name, input(name).value);
      });
    }
    language.onChange(() => {
      showPlan();
      showCurves();
    });
  },
  open(state) {
    const given = NAMES.filter((name) => state.has(name));
    for (const name of given) {
      typed[name] = state.get(name) ?? "";
      input(name).value = typed[name];
    }
    // Those that are given count as changed last. With three, the hash functions are among them.
    const last = given.length > 2 ? given.filter((name) => name === "k" || name === "n") : given;
    order = [...order.filter((name) => !last.includes(name)), ...last];
    kind = state.get("kind") ?? kind;
    for (const name of NAMES) input(name).value = typed[name];
    refresh();
  },
};
