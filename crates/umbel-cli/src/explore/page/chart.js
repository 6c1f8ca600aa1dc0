// @ts-check
// Curves over logarithmic or linear axes, which show their values under the pointer and, with the
// arrow keys, under a cursor.

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { left: 58, right: 14, top: 12, bottom: 44 };
/** The steps of the cursor from one end of the axis to the other. */
const STEPS = 60;

/**
 * An axis.
 * @typedef {object} Axis
 * @property {string} label
 * @property {boolean} log
 * @property {[number, number]} range From left to right, or from bottom to top.
 * @property {(value: number) => string} tick
 * @property {(value: number) => string} format
 */

/**
 * A curve, or dots with a bar for each. The style is one of fourteen: seven colours, solid or dashed.
 * @typedef {{ name: string, points: [number, number][], style: number, strong: boolean, bars?: [number, number][] }} Series
 */

/**
 * Everything that is drawn.
 * @typedef {{ x: Axis, y: Axis, series: Series[], mark: [number, number] | null, label: string }} Content
 */

/**
 * Creates an element of a picture.
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {string} [content]
 */
function element(name, attributes, content) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (content !== undefined) made.textContent = content;
  return made;
}

/** Returns the classes of a style. */
function classes(/** @type {Series} */ series) {
  return `s${series.style % 7} d${Math.floor(series.style / 7)}${series.strong ? " strong" : ""}`;
}

/** Returns a short piece of a curve, to stand before its name. */
function sample(/** @type {Series} */ series) {
  const picture = element("svg", { viewBox: "0 0 24 8", "aria-hidden": "true" });
  picture.append(element("path", { class: classes(series), d: "M0 4H24" }));
  return picture;
}

/** Returns round values of an axis, at most about this many. */
export function ticks(/** @type {Axis} */ axis, count = 6) {
  const [low, high] = [Math.min(...axis.range), Math.max(...axis.range)];
  const found = [];
  if (axis.log) {
    const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    const every = Math.max(1, Math.ceil((last - first + 1) / count));
    const factors = last - first < 2 ? [1, 2, 5] : [1];
    for (let power = first - 1; power <= last; power += 1) {
      for (const factor of factors) {
        const value = factor * 10 ** power;
        if (value >= low * 0.999 && value <= high * 1.001 && (last - power) % every === 0) found.push(value);
      }
    }
    return found;
  }
  const rough = (high - low) / count;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * unit).find((value) => value >= rough) ?? rough;
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-6; value += step) found.push(value);
  return found;
}

/** Returns the value of a curve at a place, between its points. */
export function at(/** @type {[number, number][]} */ points, /** @type {number} */ x, /** @type {boolean} */ log) {
  const sorted = points.length > 1 && points[0][0] > points[points.length - 1][0] ? [...points].reverse() : points;
  const next = sorted.findIndex(([other]) => other >= x);
  if (next < 0 || (next === 0 && sorted[0][0] > x * 1.0001)) return null;
  const [right, left] = [sorted[next], sorted[Math.max(0, next - 1)]];
  if (right[0] === left[0]) return right[1];
  const scale = log ? Math.log : (/** @type {number} */ value) => value;
  const share = (scale(x) - scale(left[0])) / (scale(right[0]) - scale(left[0]));
  return left[1] > 0 && right[1] > 0 ? left[1] ** (1 - share) * right[1] ** share : left[1] + share * (right[1] - left[1]);
}

export class Chart {
  /** @type {Content | null} */
  #content = null;
  #cursor = STEPS / 2;

  constructor(/** @type {HTMLElement} */ place) {
    this.place = place;
    this.svg = element("svg", { "aria-hidden": "true" });
    this.values = document.createElement("div");
    this.values.className = "values";
    this.values.hidden = true;
    this.values.setAttribute("aria-hidden", "true");
    place.append(this.svg, this.values);
    this.legend = document.createElement("ul");
    this.legend.className = "legend";
    place.after(this.legend);
    place.tabIndex = 0;
    place.setAttribute("role", "slider");
    place.setAttribute("aria-valuemin", "0");
    place.setAttribute("aria-valuemax", String(STEPS));
    place.addEventListener("pointermove", (event) => this.#point(event.offsetX));
    place.addEventListener("pointerleave", () => this.#hide());
    place.addEventListener("blur", () => this.#hide());
    place.addEventListener("focus", () => place.matches(":focus-visible") && this.#step(0));
    place.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10, Home: -STEPS, End: STEPS };
      const step = /** @type {Record<string, number>} */ (steps)[event.key];
      if (!step) return;
      this.#step(step);
      event.preventDefault();
    });
    new ResizeObserver(() => this.#draw()).observe(place);
  }

  /** Shows other curves. */
  show(/** @type {Content} */ content) {
    this.#content = content;
    this.place.setAttribute("aria-label", content.label);
    this.legend.replaceChildren(...content.series.map((curve) => {
      const item = document.createElement("li");
      item.className = curve.strong ? "strong" : "";
      item.append(sample(curve), curve.name);
      return item;
    }));
    this.#draw();
    this.#announce();
  }

  get #width() {
    return this.place.clientWidth;
  }

  get #height() {
    return this.place.clientHeight;
  }

  /** Returns the place of a value from the left or from the bottom, as a share of the axis. */
  #share(/** @type {Axis} */ axis, /** @type {number} */ value) {
    const scale = axis.log ? Math.log : (/** @type {number} */ plain) => plain;
    const [from, to] = axis.range.map(scale);
    return (scale(value) - from) / (to - from);
  }

  #x(/** @type {number} */ value) {
    const content = /** @type {Content} */ (this.#content);
    return MARGIN.left + this.#share(content.x, value) * (this.#width - MARGIN.left - MARGIN.right);
  }

  #y(/** @type {number} */ value) {
    const content = /** @type {Content} */ (this.#content);
    return this.#height - MARGIN.bottom - this.#share(content.y, value) * (this.#height - MARGIN.top - MARGIN.bottom);
  }

  #draw() {
    if (!this.#content || !this.#width) return;
    const { x, y, series, mark } = this.#content;
    const [width, height] = [this.#width, this.#height];
    const [right, bottom] = [width - MARGIN.right, height - MARGIN.bottom];
    const parts = [];
    for (const value of ticks(x, width < 420 ? 4 : 7)) {
      const place = this.#x(value);
      parts.push(element("line", { class: "grid", x1: place, x2: place, y1: MARGIN.top, y2: bottom }));
      parts.push(element("text", { x: place, y: bottom + 17, "text-anchor": "middle" }, x.tick(value)));
    }
    for (const value of ticks(y)) {
      const place = this.#y(value);
      parts.push(element("line", { class: "grid", x1: MARGIN.left, x2: right, y1: place, y2: place }));
      parts.push(element("text", { x: MARGIN.left - 7, y: place + 4, "text-anchor": "end" }, y.tick(value)));
    }
    parts.push(element("rect", { class: "frame", x: MARGIN.left, y: MARGIN.top, width: Math.max(0, right - MARGIN.left), height: Math.max(0, bottom - MARGIN.top) }));
    parts.push(element("text", { x: (MARGIN.left + right) / 2, y: height - 6, "text-anchor": "middle" }, x.label));
    // A curve that leaves the plane ends at its edge.
    const inside = (/** @type {[number, number]} */ point) => [this.#share(x, point[0]), this.#share(y, point[1])].every((share) => share > -0.001 && share < 1.001);
    for (const curve of [...series].sort((left, right) => Number(left.strong) - Number(right.strong))) {
      const points = curve.points.filter(inside);
      if (!points.length) continue;
      if (curve.bars) {
        parts.push(...this.#dots(curve));
        continue;
      }
      const path = points.map((point, number) => `${number ? "L" : "M"}${this.#x(point[0]).toFixed(1)} ${this.#y(point[1]).toFixed(1)}`);
      parts.push(element("path", { class: classes(curve), d: path.join("") }));
    }
    if (mark && inside(mark)) parts.push(element("circle", { class: "plan", cx: this.#x(mark[0]), cy: this.#y(mark[1]), r: 5 }));
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren(...parts);
    if (!this.values.hidden) this.#step(0);
  }

  /** Returns the dots of measurements with their bars. */
  #dots(/** @type {Series} */ curve) {
    const { x, y } = /** @type {Content} */ (this.#content);
    const [bottom, top] = y.range;
    return curve.points.flatMap((point, number) => {
      const [low, high] = curve.bars?.[number] ?? [point[1], point[1]];
      if (point[0] > x.range[1] || point[1] > top) return [];
      const place = this.#x(point[0]);
      const bar = { class: `bar ${classes(curve)}`, x1: place, x2: place, y1: this.#y(Math.max(low, bottom)), y2: this.#y(Math.min(high, top)) };
      return [element("line", bar), element("circle", { class: `dot ${classes(curve)}`, cx: place, cy: this.#y(point[1]), r: 3 })];
    });
  }

  /** Returns the value of the horizontal axis at a share of it. */
  #value(/** @type {number} */ share) {
    const { x } = /** @type {Content} */ (this.#content);
    const [from, to] = x.range;
    return x.log ? from * (to / from) ** share : from + (to - from) * share;
  }

  #step(/** @type {number} */ step) {
    if (!this.#content) return;
    this.#cursor = Math.min(STEPS, Math.max(0, this.#cursor + step));
    this.#reveal(this.#cursor / STEPS);
    this.#announce();
  }

  #point(/** @type {number} */ offset) {
    const share = (offset - MARGIN.left) / (this.#width - MARGIN.left - MARGIN.right);
    if (!this.#content || share < 0 || share > 1) return this.#hide();
    this.#cursor = Math.round(share * STEPS);
    this.#reveal(share);
  }

  /** Returns the curves with their values at a share of the axis, the largest first. */
  #readings(/** @type {number} */ share) {
    const { x, series } = /** @type {Content} */ (this.#content);
    const value = this.#value(share);
    const all = series.map((curve) => ({ curve, y: at(curve.points, value, x.log) }));
    const known = /** @type {{ curve: Series, y: number }[]} */ (all.filter(({ y }) => y !== null));
    return { value, readings: known.sort((left, right) => right.y - left.y) };
  }

  #reveal(/** @type {number} */ share) {
    const { x, y } = /** @type {Content} */ (this.#content);
    const { value, readings } = this.#readings(share);
    const heading = document.createElement("b");
    heading.textContent = x.format(value);
    const rows = readings.map(({ curve, y: reading }) => {
      const row = document.createElement("div");
      row.className = curve.strong ? "strong" : "";
      const name = document.createElement("span");
      name.append(sample(curve), curve.name);
      const figure = document.createElement("span");
      figure.textContent = y.format(reading);
      row.append(name, figure);
      return row;
    });
    this.values.replaceChildren(heading, ...rows);
    this.values.hidden = false;
    const place = this.#x(value);
    this.svg.querySelector(".cursor")?.remove();
    this.svg.append(element("line", { class: "cursor", x1: place, x2: place, y1: MARGIN.top, y2: this.#height - MARGIN.bottom }));
    const isRight = place > this.#width / 2;
    this.values.style.left = isRight ? "auto" : `${place + 12}px`;
    this.values.style.right = isRight ? `${this.#width - place + 12}px` : "auto";
  }

  /** Says the values at the cursor to readers of the screen. */
  #announce() {
    const content = this.#content;
    if (!content) return;
    const { value, readings } = this.#readings(this.#cursor / STEPS);
    const said = readings.map(({ curve, y }) => `${curve.name} ${content.y.format(y)}`);
    this.place.setAttribute("aria-valuenow", String(this.#cursor));
    this.place.setAttribute("aria-valuetext", `${content.x.format(value)}: ${said.join(", ")}`);
  }

  #hide() {
    this.values.hidden = true;
    this.svg.querySelector(".cursor")?.remove();
  }
}
