// @ts-check
// The texts of the page in the language of the reader, and numbers as that language writes them.

import texts from "./texts.js";

const LANGUAGES = ["en", "de"];
const STORED = "umbel-language";

/** @type {Set<() => void>} */
const listeners = new Set();
let language = chosen();

/** The language that was chosen before, or the first one of the browser that is here. */
function chosen() {
  let stored = null;
  try {
    stored = localStorage.getItem(STORED);
  } catch {
    // The browser stores nothing.
  }
  const wanted = [stored, ...navigator.languages.map((name) => name.slice(0, 2).toLowerCase())];
  return wanted.find((name) => name && LANGUAGES.includes(name)) ?? "en";
}

/** Returns the present language: `en` or `de`. */
export function current() {
  return language;
}

/** Changes the language of the page. */
export function choose(/** @type {string} */ name) {
  if (!LANGUAGES.includes(name)) return;
  language = name;
  try {
    localStorage.setItem(STORED, name);
  } catch {
    // The choice holds until the page is closed.
  }
  apply();
}

/** Calls a function whenever the language changes. */
export function onChange(/** @type {() => void} */ listener) {
  listeners.add(listener);
}

/**
 * Returns a text with its placeholders filled in.
 * @param {string} name
 * @param {Record<string, string | number>} [values]
 */
export function text(name, values = {}) {
  const found = /** @type {Record<string, any>} */ (texts)[name];
  const pattern = found ? found[language] : name;
  return pattern.replace(/\{(\w+)\}/g, (/** @type {string} */ whole, /** @type {string} */ key) => String(values[key] ?? whole));
}

/** Writes all fixed texts of the page. */
export function apply() {
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-text]")) {
    element.textContent = text(/** @type {HTMLElement} */ (element).dataset.text ?? "");
  }
  for (const element of document.querySelectorAll("[data-label]")) {
    element.setAttribute("aria-label", text(/** @type {HTMLElement} */ (element).dataset.label ?? ""));
  }
  for (const listener of listeners) listener();
}

/** Formats a number with at most this many significant digits. */
export function number(/** @type {number} */ value, digits = 21) {
  if (value !== 0 && (Math.abs(value) >= 1e15 || Math.abs(value) < 1e-6)) {
    return new Intl.NumberFormat(language, { notation: "scientific", maximumSignificantDigits: Math.min(digits, 4) }).format(value);
  }
  return new Intl.NumberFormat(language, { maximumSignificantDigits: digits }).format(value);
}

/** Formats a number in a few characters: 1.5 M. */
export function short(/** @type {number} */ value) {
  return new Intl.NumberFormat(language, { notation: "compact", maximumSignificantDigits: 3 }).format(value);
}

/** Formats a share in per cent, or as a power of ten if it is tiny. */
export function percent(/** @type {number} */ value, digits = 4) {
  if (value > 0 && value < 1e-7) return value.toExponential(Math.min(digits, 3) - 1);
  return `${number(value * 100, digits)} %`;
}

/** Formats a number of bytes with a binary unit, as the command line does. */
export function size(/** @type {number} */ bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let power = 0;
  while (power < units.length - 1 && bytes >= 1024 ** (power + 1)) power += 1;
  const digits = { minimumFractionDigits: power ? 2 : 0, maximumFractionDigits: power ? 2 : 0 };
  return `${new Intl.NumberFormat(language, digits).format(bytes / 1024 ** power)} ${units[power]}`;
}
