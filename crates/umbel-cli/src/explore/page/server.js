// @ts-check
// Questions to the program that serves this page.

const token = new URLSearchParams(location.search).get("token") ?? "";

/** An answer did not arrive: the program has ended, or the token is wrong. */
export class Unreachable extends Error {}

/**
 * Asks the server. Mistakes of the user come back in the field `error`.
 * @param {string} question
 * @param {object} fields
 * @returns {Promise<any>}
 */
export async function ask(question, fields) {
  return request(question, JSON.stringify(fields), { "content-type": "application/json" });
}

/**
 * Sends a file, whose facts can then be asked for.
 * @param {File} file
 * @returns {Promise<any>}
 */
export async function send(file) {
  return request("drop", file, { "x-umbel-name": encodeURIComponent(file.name) });
}

/**
 * @param {string} question
 * @param {BodyInit} body
 * @param {Record<string, string>} headers
 */
async function request(question, body, headers) {
  let response;
  try {
    response = await fetch(`api/${question}`, { method: "POST", headers: { "x-umbel-token": token, ...headers }, body });
  } catch {
    throw new Unreachable("gone");
  }
  if (response.status === 401) throw new Unreachable("token");
  try {
    return await response.json();
  } catch {
    throw new Unreachable("refused");
  }
}

/**
 * Returns a function that asks for the latest fields only: while an answer is awaited, a newer
 * question replaces the one that waits.
 * @param {string} question
 * @param {(answer: any) => void} show
 * @param {(error: Unreachable) => void} fail
 */
export function latest(question, show, fail) {
  let busy = false;
  /** @type {object | null} */
  let next = null;
  return async function run(/** @type {object} */ fields) {
    next = fields;
    if (busy) return;
    busy = true;
    while (next) {
      const now = next;
      next = null;
      try {
        const answer = await ask(question, now);
        if (!next) show(answer);
      } catch (error) {
        if (!(error instanceof Unreachable)) throw error;
        fail(error);
      }
    }
    busy = false;
  };
}
