// @ts-check
// The tab that fills a filter step by step: the measured rate with its interval beside theory.

import { Chart } from "./chart.js";
import * as language from "./language.js";
import { ask, Unreachable } from "./server.js";
import { text } from "./language.js";

/** The number of steps up to twice the capacity. */
const STEPS = 40;
/** The pause between steps, so that they can be followed, in milliseconds. */
const PAUSE = 120;

/** @type {import("./app.js").Page} */
let page;
/** @type {Chart} */
let chart;
/** The filter that fills, as the server described it. */
let run = /** @type {any} */ (null);
let measured = /** @type {any[]} */ ([]);
let problem = "";
/** Whether steps are being made. */
let isRunning = false;

const place = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const value = (/** @type {string} */ id) => /** @type {HTMLInputElement} */ (document.getElementById(id)).value;

/** Returns whether there is nothing more to insert. */
function isDone() {
  const last = measured.at(-1);
  return Boolean(run && last && (last.full || last.keys >= 2 * run.capacity));
}

async function begin() {
  problem = "";
  measured = [];
  run = null;
  const plan = { n: value("fill-n"), p: value("fill-p"), kind: value("fill-kind") };
  const answer = await ask("fill-start", { plan, own: value("fill-own") });
  if (answer.error) problem = answer.error;
  else run = answer;
}

/** Makes steps until the end, or until the reader stops them. */
async function go() {
  isRunning = true;
  try {
    if (!run || isDone()) await begin();
    show();
    while (isRunning && run && !isDone()) {
      const keys = Math.max(1, Math.round((2 * run.capacity * (measured.length + 1)) / STEPS));
      const own = run;
      const answer = await ask("fill-step", { run: own.run, keys });
      // Another filter may have been chosen meanwhile.
      if (run !== own) break;
      if (answer.error) {
        problem = answer.error;
        run = null;
        break;
      }
      measured.push(answer);
      page.report(null);
      show();
      await new Promise((done) => setTimeout(done, PAUSE));
    }
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    page.report(error);
  } finally {
    isRunning = false;
    show();
  }
}

function figure(/** @type {string} */ name, /** @type {(value: number) => string} */ format) {
  const last = measured.at(-1);
  const shown = place(`fill-${name}`);
  const known = last && last[name] !== null;
  shown.textContent = known ? format(last[name]) : "–";
  if (known) {
    shown.dataset.field = name;
    shown.dataset.value = String(last[name]);
  } else {
    delete shown.dataset.field;
    delete shown.dataset.value;
  }
}

function show() {
  const button = place("fill-start");
  button.textContent = text(isRunning ? "fill.stop" : !measured.length ? "fill.start" : isDone() ? "fill.again" : "fill.resume");
  figure("keys", (number) => language.number(number));
  for (const name of ["measured", "low", "high", "theory"]) figure(name, (rate) => language.percent(rate, 3));
  const last = measured.at(-1);
  const note = place("fill-note");
  note.classList.toggle("error", Boolean(problem));
  if (problem) note.textContent = problem;
  else if (!last || !run) note.textContent = text("fill.note.empty");
  else if (last.full) note.textContent = text("fill.note.full", { why: last.full });
  else note.textContent = text(last.keys <= run.capacity ? "fill.note.below" : "fill.note.beyond", { share: language.percent(last.keys / run.capacity, 3), rate: language.percent(run.fpr, 3) });
  draw();
}

function draw() {
  if (!run) return;
  const points = measured.map((step) => [step.keys, step.measured]);
  const highest = Math.max(...run.curve.map((/** @type {any} */ point) => point[1]), ...measured.map((step) => step.high), run.fpr);
  const percent = (/** @type {number} */ rate) => language.percent(rate, 3);
  chart.show({
    label: text("fill.chart"),
    x: { label: text("fill.axis.x"), log: false, range: [0, 2 * run.capacity], tick: language.short, format: (keys) => text("plan.keys", { keys: language.number(Math.round(keys)) }) },
    y: { label: text("plan.axis.rate"), log: false, range: [0, highest * 1.05], tick: percent, format: percent },
    series: [
      { name: text("fill.theory"), points: run.curve, style: 0, strong: false },
      { name: text("fill.measured"), points: /** @type {[number, number][]} */ (points), style: 1, strong: false, bars: measured.map((step) => [step.low, step.high]) },
    ],
    mark: [run.capacity, run.fpr],
  });
}

/** @type {import("./app.js").Tab} */
export const fill = {
  start(frame) {
    page = frame;
    chart = new Chart(place("chart-fill"));
    place("fill-form").addEventListener("submit", (event) => {
      event.preventDefault();
      if (isRunning) isRunning = false;
      else go();
    });
    // Another filter starts from the beginning.
    for (const id of ["fill-n", "fill-p", "fill-kind", "fill-own"]) {
      place(id).addEventListener("change", () => {
        isRunning = false;
        run = null;
        measured = [];
        problem = "";
        show();
      });
    }
    language.onChange(show);
  },
  open() {
    page.remember("fill", {});
    show();
  },
};
