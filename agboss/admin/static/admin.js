"use strict";
// What the pages also do without this file, a little more comfortably.

for (const form of document.querySelectorAll("form[data-busy]")) {
  form.addEventListener("submit", () => {
    const button = form.querySelector("button");
    button.disabled = true;
    const progress = form.querySelector("[data-progress]");
    if (progress) progress.textContent = form.dataset.busy;
    else button.textContent = form.dataset.busy;
  });
}
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload(); // gone back to: a button may still be disabled
});

for (const area of document.querySelectorAll("textarea[data-json]")) {
  const state = area.form.querySelector("[data-json-state]");
  area.addEventListener("input", () => {
    try {
      if (area.value.trim()) JSON.parse(area.value);
      state.textContent = "";
    } catch (error) {
      state.textContent = `Not valid yet: ${error.message}`;
    }
  });
}

async function refresh() {
  const live = document.querySelector("#live[data-live]");
  if (!live) return;
  const busy = live.contains(document.activeElement) || live.querySelector("details[open]");
  if (!busy && !document.hidden) {
    const answer = await fetch(location.href);
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("#live");
    if (fresh) live.replaceWith(fresh);
  }
  setTimeout(refresh, 2000);
}
setTimeout(refresh, 2000);
