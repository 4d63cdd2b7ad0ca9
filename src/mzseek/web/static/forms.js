// Forms: what is wrong stands beside the field, and the first such field gets the focus.
import { ApiError } from "./api.js";
import { h } from "./renderer.js";

// A value of a form that cannot be used.
export class FieldError extends Error {
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

function controlsOf(place) {
  return place.querySelectorAll("input, textarea, select");
}
function clear(place) {
  place.classList.remove("is-wrong");
  controlsOf(place).forEach((control) => control.removeAttribute("aria-invalid"));
  const told = place.querySelector(".error");
  if (told) told.textContent = "";
}

export function showError(form, error) {
  const alert = form.querySelector("[role=alert]"), names = String(error.field || "").split(/[.[\]]+/).reverse();
  const place = names.filter(Boolean).map((name) => form.querySelector(`[data-field="${CSS.escape(name)}"]`)).find(Boolean);
  if (!(error instanceof ApiError || error instanceof FieldError)) console.error(error);
  if (!place || !place.querySelector(".error")) {
    alert.textContent = sentence(error.message);
    alert.hidden = false;
    alert.scrollIntoView({ block: "nearest" });
    return;
  }
  const details = place.closest("details");
  if (details) details.open = true;
  for (const around of form.querySelectorAll("[data-when]")) if (around.contains(place)) around.hidden = false;
  place.classList.add("is-wrong");
  place.querySelector(".error").textContent = sentence(error.message);
  controlsOf(place).forEach((control) => control.setAttribute("aria-invalid", "true"));
  controlsOf(place)[0].focus();
}
// A message as a sentence; one that begins with the name of a file keeps it as it is.
export const sentence = (text) => text.replace(/^[a-z]+(?=[ ,])/, (word) => word[0].toUpperCase() + word.slice(1)) + (!text || /[.!?]$/.test(text) ? "" : ".");

// Calls `send(form)` when a form is sent; it is not sent again before that has ended.
export function onSubmit(form, send) {
  const button = form.querySelector("[type=submit]"), status = form.querySelector("[role=status]"), alert = form.querySelector("[role=alert]");
  form.addEventListener("input", (event) => { const place = event.target.closest("[data-field]"); if (place) clear(place); });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    form.querySelectorAll("[data-field]").forEach(clear);
    alert.hidden = true;
    button.disabled = true;
    if (status) status.textContent = "Working …";
    try {
      await send(form);
      if (status) status.textContent = "";
    } catch (error) {
      if (status) status.textContent = "";
      showError(form, error);
    } finally {
      button.disabled = false;
    }
  });
}

// Shows what belongs to a choice (data-when="name=value") while that is made.
export function followChoices(form) {
  const follow = () => form.querySelectorAll("[data-when]").forEach((place) => {
    const [name, value] = place.dataset.when.split("=");
    place.hidden = form.elements[name].value !== value;
  });
  form.addEventListener("change", follow);
  form.addEventListener("reset", () => setTimeout(follow));
  follow();
  return follow;
}

// A file input in a box, onto which files can be dropped.
export function dropBox(input) {
  const place = input.closest(".drop"), list = h("ul", { class: "files" });
  const show = () => list.replaceChildren(...[...input.files].map((file) => h("li", {}, file.name, h("small", {}, size(file.size)))));
  const over = (on) => place.classList.toggle("is-over", on);
  place.append(list);
  input.addEventListener("change", show);
  place.addEventListener("dragover", (event) => { event.preventDefault(); over(true); });
  place.addEventListener("dragleave", () => over(false));
  place.addEventListener("drop", (event) => {
    event.preventDefault();
    over(false);
    const taken = new DataTransfer();
    [...event.dataTransfer.files].slice(0, input.multiple ? undefined : 1).forEach((file) => taken.items.add(file));
    input.files = taken.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
}
const size = (bytes) => (bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

// A number as people write it; undefined where nothing is.
export function numberOf(form, name, { from = -Infinity, to = Infinity, meaning = "a number" } = {}) {
  const text = form.elements[name].value.trim();
  if (!text) return undefined;
  const value = Number(text.replace(",", "."));
  if (!(value >= from && value <= to)) throw new FieldError(name, `“${text.slice(0, 30)}” is not usable: expected ${meaning}`);
  return value;
}
export const textOf = (form, name) => form.elements[name].value.trim();
export function fillIn(form, values) {
  for (const [name, value] of Object.entries(values)) if (form.elements[name]) form.elements[name].value = Array.isArray(value) ? value.join("\n") : value;
  form.dispatchEvent(new Event("change"));
}
