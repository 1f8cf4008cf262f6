// Draws every element of class "chart" from a Vega-Lite specification, on load and after htmx has swapped one in.
//
//   data-spec="{…}" or data-spec-url="/…"   the specification, or where it is; its data stands inside it
//   aria-label="…"                          what is to be seen, in a sentence
//   data-click-url, data-click-target       a click on a mark whose datum has a key posts that key; htmx puts the answer there
//
// Nothing is evaluated as code: Vega's expressions run in its interpreter. Colours are CSS variables, so that light and
// dark need no new drawing. A specification may name the columns of a table of its data in usermeta.table.
"use strict";

(() => {
  const VENDOR = new URL("vendor/", document.currentScript.src);
  const SCRIPTS = ["vega.min.js", "vega-lite.min.js", "vega-interpreter.min.js"];
  const MOST_ROWS = 200;
  const FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif";
  const CONFIG = {
    background: "transparent",
    font: FONT,
    view: { stroke: "transparent" },
    axis: {
      domainColor: "var(--edge)", tickColor: "var(--edge)", gridColor: "var(--line)", labelColor: "var(--soft)",
      titleColor: "var(--ink)", titleFontWeight: 500, labelFontSize: 12, titleFontSize: 13, titlePadding: 8,
    },
    legend: { labelColor: "var(--ink)", titleColor: "var(--soft)", labelFontSize: 12, labelLimit: 260 },
    text: { color: "var(--ink)", fontSize: 12 },
    range: { category: Array.from({ length: 7 }, (_, number) => `var(--chart-${number + 1})`) },
  };
  const LOADER = { load: refuse, sanitize: refuse, http: refuse, file: refuse };
  const drawn = new Map();
  let ready = null;

  function refuse() {
    return Promise.reject(new Error("charts load nothing"));
  }

  function loadScripts() {
    ready ??= SCRIPTS.reduce((before, name) => before.then(() => loadScript(name)), Promise.resolve());
    return ready;
  }

  function loadScript(name) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = new URL(name, VENDOR).href;
      script.addEventListener("load", resolve);
      script.addEventListener("error", () => reject(new Error(name)));
      document.head.append(script);
    });
  }

  async function specification(chart) {
    if (chart.dataset.spec) return JSON.parse(chart.dataset.spec);
    const answer = await fetch(chart.dataset.specUrl, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  }

  async function draw(chart) {
    if (drawn.has(chart)) return;
    drawn.set(chart, null);
    try {
      const [spec] = await Promise.all([specification(chart), loadScripts()]);
      if (!chart.isConnected) return;
      const view = show(chart, spec);
      drawn.set(chart, view);
      await view.runAsync();
      chart.dataset.state = "drawn";
    } catch {
      chart.textContent = "This picture could not be drawn. Reload the page to try again.";
      chart.dataset.state = "failed";
    }
  }

  function show(chart, spec) {
    const drawing = document.createElement("div");
    drawing.className = "chart-drawing";
    chart.replaceChildren(drawing, ...dataTable(spec));
    const compiled = vegaLite.compile(spec, { config: CONFIG }).spec;
    const view = new vega.View(vega.parse(compiled, null, { ast: true }), {
      expr: vega.expressionInterpreter, renderer: "svg", container: drawing, hover: true, loader: LOADER,
      logLevel: vega.Error, tooltip: (_, event, __, value) => showTip(event, value),
    });
    drawing.setAttribute("role", "img"); // one picture with one sentence, instead of a document of many marks
    drawing.setAttribute("aria-label", chart.getAttribute("aria-label") || spec.description || "Chart");
    drawing.removeAttribute("aria-roledescription");
    chart.removeAttribute("aria-label");
    if (chart.dataset.clickUrl) view.addEventListener("click", (_, item) => choose(chart, item));
    return view;
  }

  function choose(chart, item) {
    const key = item?.datum?.key;
    if (key === undefined || key === null) return;
    const { clickUrl, clickTarget, clickSwap } = chart.dataset;
    htmx.ajax("POST", clickUrl, { values: { key }, target: clickTarget || chart, swap: clickSwap || "innerHTML" });
  }

  // ---- the data as a table, for those who do not see the picture

  function dataTable(spec) {
    const columns = spec.usermeta?.table, rows = spec.data?.values;
    if (!columns || !rows || rows.length > MOST_ROWS) return [];
    const details = document.createElement("details");
    details.className = "chart-data";
    const table = textElement("table", "");
    const head = table.createTHead().insertRow(), body = table.createTBody();
    for (const column of columns) head.append(textElement("th", column.title, { scope: "col" }));
    for (const row of rows) {
      const line = body.insertRow();
      for (const column of columns) line.insertCell().textContent = shown(row[column.field]);
    }
    const box = textElement("div", "", { class: "box", tabindex: "0", role: "region", "aria-label": "Data of the chart" });
    box.append(table);
    details.append(textElement("summary", "The data as a table"), box);
    return [details];
  }

  function textElement(name, text, attributes = {}) {
    const element = document.createElement(name);
    element.textContent = text;
    for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
    return element;
  }

  function shown(value) {
    if (value === null || value === undefined) return "–";
    if (typeof value === "boolean") return value ? "yes" : "no";
    return typeof value === "number" ? String(Number(value.toPrecision(4))) : String(value);
  }

  // ---- the tip beside the pointer

  const tip = textElement("div", "", { class: "chart-tip", "aria-hidden": "true" });
  tip.hidden = true;

  function showTip(event, value) {
    tip.hidden = value === null || value === undefined || value === "";
    if (tip.hidden) return;
    const all = typeof value === "object" ? Object.entries(value) : [["", value]];
    const entries = all.filter(([, text]) => text !== "");
    tip.replaceChildren(...entries.flatMap(([name, text]) => [textElement("span", name), textElement("strong", shown(text))]));
    if (!tip.isConnected) document.body.append(tip);
    const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
    const top = Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8);
    tip.style.left = `${Math.max(left, 8)}px`;
    tip.style.top = `${Math.max(top, 8)}px`;
  }

  // ---- when to draw

  function drawAll(root) {
    for (const chart of root.querySelectorAll(".chart")) draw(chart);
    if (root.matches?.(".chart")) draw(root);
  }

  function forgetRemoved() {
    for (const [chart, view] of drawn) {
      if (chart.isConnected) continue;
      view?.finalize();
      drawn.delete(chart);
      tip.hidden = true;
    }
  }

  document.addEventListener("htmx:load", (event) => {
    forgetRemoved();
    drawAll(event.detail.elt);
  });
  drawAll(document);
})();
