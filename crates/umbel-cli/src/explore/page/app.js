// @ts-check
// The frame of the page: tabs, language, the state in the address, and messages.

import * as language from "./language.js";
import { answers } from "./ask.js";
import { files } from "./file.js";
import { fill } from "./fill.js";
import { plan } from "./plan.js";
import { toy } from "./toy.js";

/**
 * A tab: how it starts, and how it takes up the state in the address.
 * @typedef {{ start: (page: Page) => void, open?: (state: Map<string, string>) => void }} Tab
 */

/**
 * The frame, as the tabs see it.
 * @typedef {object} Page
 * @property {(name: string, values: Record<string, string>) => void} remember Writes the state of a tab into the address.
 * @property {(name: string) => void} show Opens a tab.
 * @property {(error: Error | null) => void} report Shows that the server cannot be reached, or that it can again.
 */

/** @type {Record<string, Tab>} */
const TABS = { plan, file: files, ask: answers, toy, fill };

const names = Object.keys(TABS);
let shown = "";
/** @type {Error | null} */
let trouble = null;

/** @type {Page} */
const page = {
  remember(name, values) {
    if (name !== shown) return;
    const parts = Object.entries(values).filter(([, value]) => value !== "");
    if (name !== "plan") parts.unshift(["tab", name]);
    // A per cent sign can be read better than its code.
    const encoded = parts.map(([key, value]) => `${key}=${encodeURIComponent(value).replaceAll("%25", "%").replaceAll("%20", " ")}`);
    history.replaceState(null, "", `${location.pathname}${location.search}#${encoded.join("&")}`);
  },
  show(name) {
    /** @type {HTMLElement} */ (document.querySelector(`[data-tab="${name}"]`)).click();
  },
  report(error) {
    trouble = error;
    const place = /** @type {HTMLElement} */ (document.getElementById("trouble"));
    place.hidden = !error;
    place.textContent = error ? language.text(`trouble.${error.message}`) : "";
  },
};

/** Reads the state in the address. */
function state() {
  const pairs = location.hash.slice(1).split("&").filter((pair) => pair.includes("="));
  return new Map(pairs.map((pair) => {
    const at = pair.indexOf("=");
    return [pair.slice(0, at), decoded(pair.slice(at + 1))];
  }));
}

/** Decodes a text in which per cent signs may stand for themselves. */
function decoded(/** @type {string} */ value) {
  try {
    return decodeURIComponent(value.replace(/%(?![0-9a-fA-F]{2})/g, "%25"));
  } catch {
    return value;
  }
}

/** Shows a tab. */
function show(/** @type {string} */ name) {
  shown = name;
  for (const other of names) {
    const tab = /** @type {HTMLElement} */ (document.querySelector(`[data-tab="${other}"]`));
    const panel = /** @type {HTMLElement} */ (document.querySelector(`[data-panel="${other}"]`));
    tab.setAttribute("aria-selected", String(other === name));
    tab.tabIndex = other === name ? 0 : -1;
    panel.hidden = other !== name;
  }
}

/** Takes up the tab and its state in the address. */
function open() {
  const values = state();
  const wanted = values.get("tab") ?? "plan";
  const name = names.includes(wanted) ? wanted : "plan";
  values.delete("tab");
  show(name);
  TABS[name].open?.(values);
}

for (const tab of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-tab]"))) {
  tab.addEventListener("click", () => {
    if (tab.dataset.tab === shown) return;
    show(tab.dataset.tab ?? "plan");
    page.remember(shown, {});
    TABS[shown].open?.(new Map());
  });
  // The arrow keys move between tabs.
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0;
    if (!step) return;
    const next = names[(names.indexOf(shown) + step + names.length) % names.length];
    const target = /** @type {HTMLElement} */ (document.querySelector(`[data-tab="${next}"]`));
    target.click();
    target.focus();
    event.preventDefault();
  });
}

for (const button of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-copies]"))) {
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copies ?? "");
    try {
      await navigator.clipboard.writeText(source?.textContent ?? "");
      button.textContent = language.text("page.copied");
      setTimeout(() => (button.textContent = language.text("page.copy")), 1500);
    } catch {
      // Without the permission, the text can be selected.
      if (source) getSelection()?.selectAllChildren(source);
    }
  });
}

const choice = /** @type {HTMLSelectElement} */ (document.querySelector('[data-input="language"]'));
choice.value = language.current();
choice.addEventListener("change", () => language.choose(choice.value));
language.onChange(() => {
  for (const button of document.querySelectorAll("[data-copies]")) button.textContent = language.text("page.copy");
  page.report(trouble);
});
for (const tab of Object.values(TABS)) tab.start(page);
language.apply();
open();
addEventListener("hashchange", open);
