"use strict";
// What the pages also do without this file, a little more comfortably.

const UNSEEN = new RegExp( // showing.py has the same
  "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b\\u200e\\u200f" +
    "\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ud800-\\udfff\\ufeff\\uffa0\\ufff0-\\ufffb\\u{e0000}-\\u{e0fff}]",
  "gu",
);
const LONGEST = 20000; // characters of an answer that are shown while it comes
const shown = (text) => text.replace(UNSEEN, (found) => `⟦${found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟧`);

let leaving = false; // a form was sent: the page that it leads to has its own news, and its note is not taken from it

document.addEventListener("submit", (event) => {
  const form = event.target;
  leaving = !event.defaultPrevented;
  if (!form.dataset.busy) return;
  const button = form.querySelector("button");
  for (const one of (form.closest("[data-once]") ?? form).querySelectorAll("button")) one.disabled = true;
  const progress = form.querySelector("[data-progress]");
  if (progress) progress.textContent = form.dataset.busy;
  else button.textContent = form.dataset.busy;
});
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload(); // gone back to: a button may still be disabled
});

document.addEventListener("keydown", (event) => {
  const sends = event.target.id === "task" && event.key === "Enter" && (event.ctrlKey || event.metaKey);
  if (sends) event.target.form.requestSubmit();
});

document.addEventListener("input", (event) => {
  const area = event.target;
  if (!area.matches("textarea[data-json]")) return;
  const state = area.form.querySelector("[data-json-state]");
  try {
    if (area.value.trim()) JSON.parse(area.value);
    state.textContent = "";
  } catch (error) {
    state.textContent = `Not valid yet: ${error.message}`;
  }
});

document.querySelector("#problems")?.focus();

// A thread while something is at work in it: events where the server has them, else a look every two seconds.
let source = null;
let waiting = 0;

function later(seconds) {
  clearTimeout(waiting);
  waiting = setTimeout(renew, seconds * 1000);
}

function watch() {
  source?.close();
  source = null;
  clearTimeout(waiting);
  const place = document.querySelector("[data-events]");
  if (!place) {
    if (document.querySelector("#live[data-live]")) later(2);
    return;
  }
  const told = place.querySelector("[data-progress]");
  const answer = place.querySelector("[data-answer]");
  const progress = place.querySelector("progress");
  const listen = (name, act) => source.addEventListener(name, (event) => act(JSON.parse(event.data)));
  let text = "";
  const show = (whole) => {
    text = whole.slice(0, LONGEST);
    answer.textContent = shown(text);
  };
  source = new EventSource(place.dataset.events);
  listen("node_started", ({ node }) => {
    told.textContent = `${shown(node)} is at work.`;
    show("");
  });
  listen("tool_started", ({ tool }) => {
    told.textContent = `The tool ${shown(tool)} runs.`;
    show("");
  });
  listen("text_delta", (event) => {
    if (text.length < LONGEST) show(text + event.text);
  });
  listen("answered", (event) => {
    show(event.answer);
    told.textContent = "Answered; memory is brought up to date.";
  });
  listen("paused", ({ tool }) => {
    told.textContent = `The tool ${shown(tool)} waits for a decision.`;
  });
  listen("progress", (state) => {
    told.textContent = state.text;
    if (progress && state.max) {
      progress.max = state.max;
      progress.value = state.value;
    }
  });
  for (const last of ["ended", "failed", "done"]) source.addEventListener(last, renew);
  source.onerror = () => {
    source.close(); // the end was missed, or the server is gone for a while
    later(2);
  };
}

async function renew() {
  source?.close();
  if (leaving) return;
  let answer = null;
  try {
    answer = await fetch(location.href);
  } catch {
    // tried again below
  }
  if (leaving) return;
  if (!answer?.ok) return later(5);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.querySelector("#live");
  const old = document.querySelector("#live");
  if (!fresh || !old) return location.reload();
  const open = [...old.querySelectorAll("details[open]")].map((one) => one.id);
  const focused = document.activeElement?.id;
  const within = old.contains(document.activeElement);
  for (const area of old.querySelectorAll("textarea, input:not([type=hidden])")) {
    const written = area.value !== area.defaultValue || "keep" in area.dataset;
    const next = written && area.id && page.getElementById(area.id);
    if (next) next.value = area.value; // what somebody is writing
  }
  old.replaceWith(fresh);
  document.querySelector("#notes").replaceWith(page.querySelector("#notes"));
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (within) (document.getElementById(focused) ?? document.getElementById("task"))?.focus();
  watch();
}

watch();
