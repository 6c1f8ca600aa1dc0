// @ts-check
// Small pieces that several tabs build their pages from.

/**
 * Creates an element with attributes and contents.
 * @param {string} name
 * @param {Record<string, string>} attributes
 * @param {...(Node | string)} contents
 */
export function make(name, attributes, ...contents) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...contents);
  return element;
}

/**
 * Creates an element with the exact value of a field and the text that readers see.
 * @param {string} name
 * @param {string} field
 * @param {any} value
 * @param {string} shown
 */
export function field(name, field, value, shown) {
  return make(name, { "data-field": field, "data-value": String(value) }, shown);
}

/** Returns the last part of a path. */
export function base(/** @type {string} */ path) {
  return path.split("/").pop() || path;
}
