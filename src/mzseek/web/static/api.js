// Calls of the JSON API.
const CSRF = document.querySelector("meta[name=csrf-token]")?.content;

// What the API refuses: `field` names the field of the request that is wrong.
export class ApiError extends Error {
  constructor(status, { code = "", message = "", field = null } = {}) {
    super(message || `The server answered with status ${status}.`);
    Object.assign(this, { status, code, field });
  }
}

export async function call(method, path, body) {
  const headers = CSRF ? { "X-CSRF-Token": CSRF } : {};
  if (body !== undefined && !(body instanceof FormData)) {
    headers["Content-Type"] = "application/json";
    body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch("/api/v1/" + path, { method, headers, body });
  } catch {
    throw new ApiError(0, { code: "no_connection", message: "The server cannot be reached. Is it still running?" });
  }
  const text = await answer.text();
  let data = null;
  try { data = text ? JSON.parse(text) : null; } catch { /* an answer of something between here and the server */ }
  if (!answer.ok) throw new ApiError(answer.status, data?.error);
  return data;
}
export const get = (path, query) => call("GET", query ? `${path}?${new URLSearchParams(query)}` : path);
export const post = (path, body) => call("POST", path, body);

// The data that the server has put into the page.
export const pageData = JSON.parse(document.getElementById("data")?.textContent || "{}");
