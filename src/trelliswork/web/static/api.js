// Requests to the server of this page. What goes wrong becomes an error whose message is a sentence.

export class ServerProblem extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const TOKEN = "trelliswork-token"; // kept until the tab is closed
const token = () => sessionStorage.getItem(TOKEN);

/** Send this token with every request from now on. */
export const keepToken = (value) => sessionStorage.setItem(TOKEN, value);

async function request(method, path, body, { signal } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (token()) headers.Authorization = `Bearer ${token()}`;
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      signal,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerProblem(0, "The server does not answer. Is `trelliswork serve` still running?");
  }
  const found = await response.json().catch((error) => {
    if (error.name === "AbortError") throw error;
    return {};
  });
  if (!response.ok)
    throw new ServerProblem(response.status, found.detail || `The server answered with status ${response.status}.`);
  return found;
}

export const get = (path, options) => request("GET", path, undefined, options);
export const post = (path, body, options) => request("POST", path, body, options);

/** The answers to one input, {text} or {tokens: [words]}: `pins` as the API has them. */
export const predict = (model, input, { pins = [], top_k = 0, choices = 0, expected = false, ...options } = {}) =>
  post("v1/predict", { model, ...input, pins, top_k, choices, expected }, options);

/** A picture of one sentence of an input. */
export const draw = (model, input, { pins = [], picture = "auto", sentence = 0, ...options } = {}) =>
  post("v1/draw", { model, ...input, pins, picture, sentence }, options);

/** What speaks for the answers to an input. */
export const explain = (model, input, { shown = 8, ...options } = {}) =>
  post("v1/explain", { model, ...input, shown }, options);
