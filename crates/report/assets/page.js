// Draws the page's figures and makes their buttons work. It needs nothing outside the page and works offline.
(() => {
  "use strict";
  const root = document.documentElement;
  const palette = JSON.parse(document.getElementById("palette").textContent);
  const font = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", Arial, sans-serif';
  const inks = {
    light: { ink: "#191d24", muted: "#5a616d", grid: "#ecece8", line: "#c9cbc4", surface: "#ffffff" },
    dark: { ink: "#e9ebef", muted: "#a4acb9", grid: "#262c36", line: "#475060", surface: "#171b22" },
  };
  const theme = () => (root.dataset.theme === "dark" ? "dark" : "light");

  const figures = [...document.querySelectorAll("figure.figure")].map((element) => {
    const { table, panels, series } = JSON.parse(element.querySelector("script[type='application/json']").textContent);
    const values = table.rows.map((row) => Object.fromEntries(row.map((cell, i) => [table.columns[i], cell])));
    const labels = new Map((series?.items ?? []).map((item) => [item.value, item.label]));
    if (series) for (const row of values) row.series_label = labels.get(row[series.column]) ?? row[series.column];
    const views = [...element.querySelectorAll(".view")];
    return { element, table, panels, series, values, views, results: [], hidden: new Set((series?.items ?? []).filter((item) => !item.shown).map((item) => item.value)), zoom: false };
  });

  // A specification names colours by token ("@blue"); a theme decides the shade.
  function shaded(value, name) {
    if (typeof value === "string") return (value[0] === "@" && (palette[value]?.[name] ?? inks[name][value.slice(1)])) || value;
    if (Array.isArray(value)) return value.map((item) => shaded(item, name));
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, shaded(v, name)]));
    return value;
  }

  function config(name) {
    const ink = inks[name];
    return {
      font, background: null, padding: { left: 2, right: 14, top: 8, bottom: 2 },
      view: { stroke: null },
      axis: {
        labelColor: ink.muted, titleColor: ink.ink, gridColor: ink.grid, domainColor: ink.line, tickColor: ink.line, labelFontSize: 12, titleFontSize: 12.5,
        titleFontWeight: 560, labelPadding: 5, titlePadding: 9, tickSize: 4, labelLimit: 130, titleLimit: 0, labelFlush: false,
      },
      axisX: { grid: false },
      axisY: { domain: false, ticks: false },
      title: { color: ink.ink, fontSize: 13, fontWeight: 600, anchor: "start" },
      text: { color: ink.muted, fontSize: 12, font },
      rule: { color: ink.line },
      line: { strokeWidth: 2, strokeJoin: "round" },
      legend: { labelColor: ink.muted, titleColor: ink.ink, labelFontSize: 12, titleFontSize: 12, orient: "bottom" },
      range: { ramp: name === "dark" ? ["#1e2a38", "#58b0ee"] : ["#eaf3f9", "#0072b2"] },
    };
  }

  const clone = (value) => JSON.parse(JSON.stringify(value));
  const channel = (spec, name) => (spec.encoding && spec.encoding[name]) || (spec.layer && spec.layer.map((l) => channel(l, name)).find(Boolean));

  // An axis title that is longer than its axis is broken into two lines.
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = `600 12.5px ${font}`;
  function wrap(spec, room) {
    for (const name of ["x", "y"]) {
      const axis = spec.encoding && spec.encoding[name];
      if (!axis || typeof axis.title !== "string" || ruler.measureText(axis.title).width <= room[name]) continue;
      const words = axis.title.split(" ");
      const lines = words.slice(1).map((_, i) => [words.slice(0, i + 1).join(" "), words.slice(i + 1).join(" ")]);
      const longest = (pair) => Math.max(...pair.map((line) => ruler.measureText(line).width));
      if (lines.length) axis.title = lines.reduce((best, pair) => (longest(pair) < longest(best) ? pair : best));
    }
    for (const layer of spec.layer || []) wrap(layer, room);
  }

  // The complete specification of one panel, with rows, size, theme, hidden series and zoom.
  function drawing(figure, index, name, width) {
    const panel = figure.panels[index];
    const spec = shaded(clone(panel.spec), name);
    spec.data = { values: figure.values };
    spec.width = width || "container";
    if (width) spec.autosize = { type: "fit-x", contains: "padding" };
    spec.height = panel.height;
    const names = (channel(spec, "y") || {}).type === "nominal" ? 80 : 0;
    const room = (width || figure.views[index].clientWidth) - 70 - names;
    wrap(spec, { x: room, y: panel.height });
    spec.config = config(name);
    if (figure.series) {
      spec.params = [{ name: "hidden", value: [...figure.hidden] }, ...(spec.params || [])];
      spec.transform = [{ filter: `indexof(hidden, datum[${JSON.stringify(figure.series.column)}]) < 0` }, ...(spec.transform || [])];
    }
    if (figure.zoom) {
      const encodings = ["x", "y"].filter((c) => (channel(spec, c) || {}).type === "quantitative");
      const unit = spec.layer ? spec.layer[0] : spec;
      if (encodings.length) unit.params = [...(unit.params || []), { name: "zoom", select: { type: "interval", encodings }, bind: "scales" }];
    }
    return spec;
  }

  const options = { mode: "vega-lite", actions: false, ast: true, renderer: "svg", logLevel: vega.Error, defaultStyle: false, tooltip: { disableDefaultStyle: true } };

  async function draw(figure, index) {
    const view = figure.views[index];
    try {
      if (figure.results[index]) figure.results[index].finalize();
      figure.results[index] = await vegaEmbed(view, drawing(figure, index, theme()), options);
      view.dataset.state = "drawn";
    } catch (error) {
      view.dataset.state = "failed";
      view.innerHTML = "<p class='failed'>This figure could not be drawn; its numbers are in the CSV.</p>";
      console.error(`figure ${figure.element.id}: ${error.stack || error}`);
    }
  }

  let round = 0;
  async function drawAll() {
    const mine = ++round;
    root.dataset.drawn = "no";
    for (const figure of figures)
      for (let i = 0; i < figure.panels.length; i++) {
        await draw(figure, i);
        await new Promise((done) => setTimeout(done));
        if (mine !== round) return;
      }
    root.dataset.drawn = "yes";
  }

  function save(name, type, content) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }

  // Like `for_csv` in crates/record/src/text.rs: a formula of a spreadsheet becomes text; numbers stay.
  const formula = (text) => /^[=+\-@\t\r\n]/.test(text) && !/^[+-](inf|(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)$/i.test(text);
  const field = (cell) => {
    const content = cell === null || cell === undefined ? "" : String(cell);
    const text = formula(content) ? `'${content}` : content;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = (table) => [table.columns, ...table.rows].map((row) => row.map(field).join(",")).join("\n") + "\n";
  const xml = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

  // All panels of a figure and its legend as one picture on white, at a size suitable for a paper.
  async function picture(figure) {
    const count = figure.panels.length, columns = Math.min(count, Number(figure.element.querySelector(".panels").dataset.columns) || 1);
    const width = count === 1 ? 620 : 360, gap = 24;
    const measure = document.createElement("canvas").getContext("2d");
    measure.font = `13px ${font}`;
    const stage = document.createElement("div");
    stage.style.cssText = `position:absolute;left:-9999px;top:0;width:${width}px`;
    document.body.append(stage);
    const parts = [];
    let y = 12, x = 12;
    if (figure.series) {
      for (const item of figure.series.items.filter((item) => !figure.hidden.has(item.value))) {
        const length = measure.measureText(item.label).width + 42;
        if (x + length > columns * (width + gap) && x > 12) { x = 12; y += 22; }
        parts.push(`<circle cx="${x + 7}" cy="${y + 8}" r="5" fill="${shaded(item.colour, "light")}"/><text x="${x + 18}" y="${y + 12.5}" font-size="13" fill="#191d24">${xml(item.label)}</text>`);
        x += length;
      }
      y += 32;
    }
    for (let first = 0; first < count; first += columns) {
      let tallest = 0;
      for (let i = first; i < Math.min(count, first + columns); i++) {
        const result = await vegaEmbed(stage, drawing({ ...figure, zoom: false }, i, "light", width), options);
        const svg = await result.view.toSVG();
        result.finalize();
        const left = 12 + (i - first) * (width + gap), title = figure.panels[i].title;
        if (title) parts.push(`<text x="${left + 4}" y="${y + 12}" font-size="14" font-weight="600" fill="#191d24">${xml(title)}</text>`);
        const top = y + (title ? 22 : 0);
        parts.push(svg.replace(/^<svg /, `<svg x="${left}" y="${top}" `));
        tallest = Math.max(tallest, top - y + Number(/height="([\d.]+)"/.exec(svg)[1]));
      }
      y += tallest + gap;
    }
    stage.remove();
    const whole = columns * (width + gap) + 12;
    const text = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="${whole}" height="${y}" viewBox="0 0 ${whole} ${y}" font-family="${xml(font)}"><rect width="100%" height="100%" fill="#ffffff"/>${parts.join("")}</svg>`;
    return { text, width: whole, height: y };
  }

  async function png(figure) {
    const { text, width, height } = await picture(figure);
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await image.decode();
    const canvas = document.createElement("canvas"), scale = 3;
    canvas.width = width * scale;
    canvas.height = height * scale;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  }

  function numbers(figure) {
    const box = document.createElement("div"), most = 400;
    box.className = "numbers";
    box.tabIndex = 0;
    const table = box.appendChild(document.createElement("table"));
    const line = (parent, tag, cells) => {
      const row = parent.appendChild(document.createElement("tr"));
      for (const cell of cells) row.appendChild(document.createElement(tag)).textContent = typeof cell === "number" ? String(Number(cell.toPrecision(6))) : cell ?? "";
    };
    line(table.createTHead(), "th", figure.table.columns);
    const body = table.createTBody();
    for (const row of figure.table.rows.slice(0, most)) line(body, "td", row);
    if (figure.table.rows.length > most) box.appendChild(document.createElement("p")).textContent = `These are the first ${most} of ${figure.table.rows.length} rows; the CSV contains all of them.`;
    return box;
  }

  const actions = {
    csv: (figure) => save(`${figure.element.id}.csv`, "text/csv", csv(figure.table)),
    svg: async (figure) => save(`${figure.element.id}.svg`, "image/svg+xml", (await picture(figure)).text),
    png: async (figure) => save(`${figure.element.id}.png`, "image/png", await png(figure)),
    zoom: (figure, button) => {
      figure.zoom = !figure.zoom;
      button.setAttribute("aria-pressed", figure.zoom);
      figure.panels.forEach((_, i) => draw(figure, i));
    },
    numbers: (figure, button) => {
      const shown = figure.element.querySelector(".numbers");
      if (shown) shown.remove();
      else figure.element.append(numbers(figure));
      button.setAttribute("aria-pressed", !shown);
    },
  };

  for (const figure of figures) {
    figure.element.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      if (button.dataset.action) actions[button.dataset.action](figure, button);
      if (button.dataset.series !== undefined) {
        const value = figure.series.items[button.dataset.series].value;
        if (!figure.hidden.delete(value)) figure.hidden.add(value);
        button.setAttribute("aria-pressed", !figure.hidden.has(value));
        for (const result of figure.results) if (result) result.view.signal("hidden", [...figure.hidden]).runAsync();
      }
    });
  }

  for (const button of document.querySelectorAll(".copy"))
    button.addEventListener("click", async () => {
      const text = button.parentElement.querySelector("pre").textContent;
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(button.parentElement.querySelector("pre"));
        button.textContent = "Selected";
      }
    });

  const stored = (() => { try { return localStorage.getItem("leaklab-theme"); } catch { return null; } })();
  const system = matchMedia("(prefers-color-scheme: dark)");
  const toggle = document.querySelector(".theme button");
  let chosen = stored;
  function setTheme() {
    const name = chosen || (system.matches ? "dark" : "light");
    const before = root.dataset.theme;
    root.dataset.theme = name;
    toggle.textContent = name === "dark" ? "Light theme" : "Dark theme";
    for (const swatch of document.querySelectorAll("[data-colour]")) swatch.style.setProperty("--colour", shaded(swatch.dataset.colour, name));
    if (before !== name || root.dataset.drawn === undefined) drawAll();
  }
  toggle.addEventListener("click", () => {
    chosen = theme() === "dark" ? "light" : "dark";
    try { localStorage.setItem("leaklab-theme", chosen); } catch { /* a page opened from disk may have no storage */ }
    setTheme();
  });
  system.addEventListener("change", setTheme);
  setTheme();

  // If the width changes (a phone is turned), axis titles are broken into lines again.
  let width = innerWidth, rested;
  addEventListener("resize", () => {
    clearTimeout(rested);
    if (innerWidth !== width) rested = setTimeout(() => { width = innerWidth; drawAll(); }, 200);
  });

  const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries)
      if (entry.isIntersecting) {
        links.forEach((link) => link.removeAttribute("aria-current"));
        links.get(entry.target.id)?.setAttribute("aria-current", "true");
      }
  }, { rootMargin: "-15% 0px -75% 0px" });
  document.querySelectorAll("main [id]").forEach((part) => { if (links.has(part.id)) seen.observe(part); });

  // Claims are collapsed on a narrow screen. A link to a claim opens it, and printing opens all of them.
  const claims = [...document.querySelectorAll("details.claim")];
  if (matchMedia("(max-width: 52rem)").matches) for (const claim of claims) claim.open = false;
  const openLinked = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  for (const link of document.querySelectorAll("a[href^='#claim-']"))
    link.addEventListener("click", () => { const claim = document.getElementById(link.hash.slice(1)); if (claim) claim.open = true; });
  addEventListener("hashchange", openLinked);
  openLinked();
  addEventListener("beforeprint", () => { for (const collapsed of document.querySelectorAll("main details")) collapsed.open = true; });

  // The page of a study that is still running reloads itself and keeps its scroll position.
  const refresh = Number(root.dataset.refresh);
  if (refresh > 0) {
    try { scrollTo(0, Number(sessionStorage.getItem("leaklab-scroll")) || 0); } catch { /* see above */ }
    setTimeout(() => {
      try { sessionStorage.setItem("leaklab-scroll", String(scrollY)); } catch { /* see above */ }
      location.reload();
    }, refresh * 1000);
  }
})();
