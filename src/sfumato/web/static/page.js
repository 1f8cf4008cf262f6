// What the page does by itself: copying a text, and ticking all boxes of a table. Everything else is htmx.
"use strict";

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy-target]");
  if (!button) return;
  const text = document.querySelector(button.dataset.copyTarget).textContent;
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Select and copy by hand";
  }
  setTimeout(() => { button.textContent = before; }, 2000);
});

document.addEventListener("change", (event) => {
  const all = event.target.closest("[data-check-all]");
  if (!all) return;
  for (const box of document.querySelectorAll(all.dataset.checkAll)) box.checked = all.checked;
});

document.addEventListener("input", (event) => {
  const range = event.target.closest("input[data-shows]");
  if (range) document.querySelector(range.dataset.shows).textContent = range.value;
});
