// What the page does by itself: copying a text, ticking all boxes of a table, and saying that the server is gone.
// Everything else is htmx.
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

// A server that was ended, or a machine that was restarted, gives no answer at all. Who comes back to the tab, or presses
// something that htmx sends, is told so, and no longer once it answers again.
const GONE = "The server of this page does not answer: it was ended, or this machine was restarted. Start it again, and "
  + "open the address that it gives. The project file, releases and comparisons are in the folder of your data.";

function sayGone(isGone) {
  let notice = document.querySelector("#server-gone");
  if (!isGone) {
    notice?.remove();
    return;
  }
  if (notice) return;
  notice = document.createElement("div");
  notice.id = "server-gone";
  notice.className = "problem";
  notice.setAttribute("role", "alert");
  notice.textContent = GONE;
  document.querySelector("#main")?.prepend(notice);
}

document.addEventListener("htmx:sendError", () => sayGone(true));
document.addEventListener("htmx:afterOnLoad", () => sayGone(false));
document.addEventListener("visibilitychange", async () => {
  if (document.visibilityState !== "visible") return;
  try {
    await fetch("/static/icon.svg", { method: "HEAD", cache: "no-store" });
    sayGone(false);
  } catch {
    sayGone(true);
  }
});
