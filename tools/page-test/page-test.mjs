// Opens pages as a reader would, wide and narrow, light and dark. Checks that there are no console messages
// and no requests, that every figure is drawn with marks, that buttons and downloads work, and that nothing
// overlaps or is truncated. Prints the problems and exits with 1 if there are any.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const shots = resolve(process.env.PAGE_TEST_SHOTS);
mkdirSync(shots, { recursive: true });
const flags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const problems = [];

// Runs in the page: problems of the layout.
function layout() {
  const found = [];
  const shown = (e) => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== "hidden";
  const words = (e) => (e.textContent || "").trim().slice(0, 50);
  const scrolls = (e) => {
    for (let p = e; p; p = p.parentElement)
      if (/auto|scroll/.test(getComputedStyle(p).overflowX)) return true;
    return false;
  };
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth + 1) {
    const wide = [...document.querySelectorAll("main *")].find(
      (e) => e.getBoundingClientRect().right > page.clientWidth + 1 && !scrolls(e),
    );
    found.push(
      `the page is ${page.scrollWidth} px wide in a window of ${page.clientWidth} px ` +
        `(${wide ? `${wide.tagName}.${wide.className}: ${words(wide)}` : "?"})`,
    );
  }
  for (const e of document.querySelectorAll(
    "main p, main li, main h1, main h2, main h3, main h4, main td, main th, main dt, main dd, button, " +
      ".verdict, nav a, summary",
  ))
    if (shown(e) && !scrolls(e)) {
      if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && getComputedStyle(e).display !== "inline")
        found.push(`text is truncated or overflows: ${e.tagName} “${words(e)}”`);
      const box = e.getBoundingClientRect();
      if (box.right > page.clientWidth + 1 || box.left < -1)
        found.push(`text leaves the window: ${e.tagName} “${words(e)}”`);
    }
  // Text in pictures must be inside its picture, and texts must not overlap.
  for (const svg of document.querySelectorAll(".view svg")) {
    const frame = svg.getBoundingClientRect();
    const name = svg.closest("figure").id;
    const texts = [...svg.querySelectorAll("text")]
      .filter(
        (t) =>
          words(t) &&
          shown(t) &&
          Number(getComputedStyle(t).opacity) > 0 &&
          Number(t.getAttribute("opacity") ?? 1) > 0,
      )
      .map((t) => ({ t, box: t.getBoundingClientRect() }));
    for (const { t, box } of texts) {
      if (
        box.left < frame.left - 2 ||
        box.right > frame.right + 2 ||
        box.top < frame.top - 3 ||
        box.bottom > frame.bottom + 3
      )
        found.push(`${name}: text leaves its picture: “${words(t)}”`);
      if (words(t).endsWith("…")) found.push(`${name}: text is truncated: “${words(t)}”`);
    }
    for (let i = 0; i < texts.length; i++)
      for (let j = i + 1; j < texts.length; j++) {
        const a = texts[i].box, b = texts[j].box;
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 2 && high > 3)
          found.push(`${name}: “${words(texts[i].t)}” overlaps “${words(texts[j].t)}”`);
      }
  }
  // Neighbouring blocks must not overlap.
  for (const parent of document.querySelectorAll(
    "main, section, figure, .panels, .figure-head, .series, .tools, .facts, .lead",
  )) {
    const boxes = [...parent.children]
      .filter(shown)
      .map((e) => ({ e, box: e.getBoundingClientRect() }))
      .filter(({ box }) => box.width && box.height);
    for (let i = 0; i < boxes.length; i++)
      for (let j = i + 1; j < boxes.length; j++) {
        const a = boxes[i].box, b = boxes[j].box;
        if (
          Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 &&
          Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2
        )
          found.push(
            `${boxes[i].e.tagName}.${boxes[i].e.className} overlaps ` +
              `${boxes[j].e.tagName}.${boxes[j].e.className} in ` +
              `${parent.id || parent.className || parent.tagName}`,
          );
      }
  }
  return found;
}

// Runs in the page: text with too little contrast to its background (WCAG: 4.5, or 3 for large text).
function contrast() {
  const found = new Set();
  const parse = (c) => {
    const m = /rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)/.exec(c);
    return m ? [+m[1], +m[2], +m[3], m[4] === undefined ? 1 : +m[4]] : null;
  };
  const light = ([r, g, b]) => {
    const f = (v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const behind = (e) => {
    for (let p = e; p; p = p.parentElement) {
      const c = parse(getComputedStyle(p).backgroundColor);
      if (c && c[3] === 1) return c;
    }
    return [255, 255, 255, 1];
  };
  for (const e of document.querySelectorAll(
    "main p, main li, h1, h2, h3, h4, td, th, dt, dd, button, .verdict, nav a, summary, .range, .paper, " +
      ".view svg text",
  )) {
    if (!e.getClientRects().length || !(e.textContent || "").trim()) continue;
    const style = getComputedStyle(e), colour = parse(e.closest("svg") ? style.fill : style.color);
    if (!colour) continue;
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.6 && +style.fontWeight >= 700);
    const value = ratio(colour, behind(e));
    if (value < (large ? 3 : 4.5))
      found.add(`contrast ${value.toFixed(2)} of “${e.textContent.trim().slice(0, 40)}” (${e.tagName})`);
  }
  return [...found];
}

// Number of marks of a picture: everything that is drawn except axes, titles and backgrounds.
const marks = (view) =>
  view.evaluate(
    (v) =>
      [...v.querySelectorAll(".role-mark path, .role-mark line, .role-mark text")].filter(
        (m) => m.getAttribute("d") !== "" && m.getBBox().width + m.getBBox().height > 0,
      ).length,
  );

async function settled(page) {
  await page.waitForFunction(() => document.documentElement.dataset.drawn === "yes", null, {
    timeout: 180000,
  });
}

async function check(browser, file, width, scheme, used) {
  const pageName = basename(file, ".html");
  const label = `${basename(dirname(file))}${pageName === "report" ? "" : `-${pageName}`}-${width}-${scheme}`;
  const say = (text) => problems.push(`${label}: ${text}`);
  const context = await browser.newContext({
    viewport: { width, height: width > 600 ? 900 : 844 },
    colorScheme: scheme,
    deviceScaleFactor: 1,
    acceptDownloads: true,
    hasTouch: width < 600,
  });
  const page = await context.newPage();
  // On a busy machine, pages are slow.
  page.setDefaultTimeout(180000);
  page.on("console", (m) => say(`console ${m.type()}: ${m.text()}`));
  page.on("pageerror", (e) => say(`script error: ${e.message}`));
  const address = pathToFileURL(file).href;
  page.on("request", (r) => {
    if (r.url().split("#")[0] !== address && !/^(data|blob):/.test(r.url()))
      say(`a request left the page: ${r.url()}`);
  });
  page.on("dialog", (d) => { say(`a script in the content ran: ${d.message()}`); d.dismiss(); });
  await page.goto(address);
  await settled(page);
  if ((await page.title()) === "broken") say("a script in the content ran");
  const theme = await page.evaluate(() => document.documentElement.dataset.theme);
  if (theme !== scheme) say(`the theme is ${theme}, but the system requests ${scheme}`);
  for (const problem of await page.evaluate(layout)) say(problem);
  for (const problem of await page.evaluate(contrast)) say(problem);
  const figures = await page.$$("figure.figure");
  for (const figure of figures) {
    const id = await figure.getAttribute("id");
    for (const view of await figure.$$(".view")) {
      if ((await view.getAttribute("data-state")) !== "drawn") say(`${id}: not drawn`);
      else if ((await marks(view)) === 0) say(`${id}: a picture has no marks`);
    }
  }
  await page.screenshot({ path: join(shots, `${label}.png`), fullPage: true, timeout: 180000 });
  await firstScreen(page, width, say);
  if (used && width > 600 && scheme === "light") await use(page, figures, say, label);
  if (scheme === "dark") {
    await page.emulateMedia({ media: "print" });
    const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    if (ground !== "rgb(255, 255, 255)") say(`the background in print is ${ground}`);
  }
  await context.close();
  return figures.length;
}

// Checks what a reader sees before scrolling, and that claims are folded on narrow screens.
async function firstScreen(page, width, say) {
  const top = await page.evaluate(
    (what) => document.querySelector(what)?.getBoundingClientRect().top,
    width > 600 ? "#answer .view" : "#answer figure",
  );
  const room = page.viewportSize().height;
  if (top !== undefined && top > room - 120)
    say(`the first figure begins at ${Math.round(top)} px, below the first screen of ${room} px`);
  const claims = await page.$$("details.claim");
  for (const claim of claims) {
    const open = await claim.evaluate((c) => c.open);
    if (open !== width > 832) say(`a claim is ${open ? "open" : "folded"} at a width of ${width} px`);
  }
  if (!claims.length || width > 832) return;
  const before = await page.evaluate(() => document.documentElement.scrollHeight);
  const link = await page.$(".findings a");
  await link.click();
  if (!(await claims[0].evaluate((c) => c.open))) say("a link to a claim does not open it");
  await page.evaluate(() => document.querySelectorAll("details.claim").forEach((c) => (c.open = true)));
  if ((await page.evaluate(() => document.documentElement.scrollHeight)) <= before)
    say("opening the claims shows nothing");
  for (const problem of await page.evaluate(layout)) say(`claims open: ${problem}`);
}

// Tests every button of every figure.
async function use(page, figures, say, label) {
  for (const figure of figures) {
    const id = await figure.getAttribute("id");
    const total = async () => {
      let n = 0;
      for (const view of await figure.$$(".view")) n += await marks(view);
      return n;
    };
    const settle = () => page.waitForTimeout(120);
    const before = await total();
    for (const button of await figure.$$(".series button")) {
      const on = (await button.getAttribute("aria-pressed")) === "true";
      await button.click();
      await settle();
      if ((await button.getAttribute("aria-pressed")) !== String(!on))
        say(`${id}: a series button does not report that it is ${on ? "off" : "on"}`);
      const changed = await total();
      if (on ? changed >= before : changed <= before)
        say(`${id}: switching a series ${on ? "off" : "on"} changes ${before} marks to ${changed}`);
      await button.click();
      await settle();
      if ((await total()) !== before) say(`${id}: switching a series back does not restore its marks`);
    }
    const data = await figure.evaluate((f) => JSON.parse(f.querySelector("script").textContent).table);
    const fetched = async (action) => {
      const [download] = await Promise.all([
        page.waitForEvent("download", { timeout: 180000 }),
        figure.$(`[data-action=${action}]`).then((b) => b.click()),
      ]);
      if (download.suggestedFilename() !== `${id}.${action}`)
        say(`${id}: the download is named ${download.suggestedFilename()}`);
      return readFileSync(await download.path());
    };
    const csv = (await fetched("csv")).toString();
    const lines = csv.trimEnd().split("\n");
    if (lines[0] !== data.columns.join(",") || lines.length !== data.rows.length + 1)
      say(
        `${id}: the CSV has ${lines.length - 1} of ${data.rows.length} rows, and the header ${lines[0]}`,
      );
    for (const [, quoted, plain] of csv.matchAll(/(?:^|[,\n])(?:"((?:[^"]|"")*)"|([^,\n]*))/g)) {
      const cell = quoted ?? plain;
      if (/^[=+\-@\t\r]/.test(cell) && !/^[+-](inf|[\d.])/.test(cell))
        say(`${id}: the CSV has a cell that spreadsheets read as a formula: ${cell}`);
    }
    const svg = (await fetched("svg")).toString();
    if (!svg.startsWith("<svg") || (svg.match(/<path/g) || []).length < 3) say(`${id}: the SVG is empty`);
    const broken = await page.evaluate(
      (text) =>
        new DOMParser().parseFromString(text, "image/svg+xml").querySelector("parsererror")?.textContent,
      svg,
    );
    if (broken) say(`${id}: the SVG is not XML: ${broken}`);
    const overlaps = await page.evaluate((text) => {
      const whole = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
      const size = (e, name) => Number(e.getAttribute(name) || 0);
      const parts = [...whole.children]
        .filter((e) => e.tagName === "svg")
        .map((e) => ({
          left: size(e, "x"),
          right: size(e, "x") + size(e, "width"),
          top: size(e, "y"),
          bottom: size(e, "y") + size(e, "height"),
        }));
      const cut = parts.some((p) => p.right > size(whole, "width") || p.bottom > size(whole, "height"));
      const meet = parts.some((p, i) =>
        parts
          .slice(0, i)
          .some((q) => p.left < q.right && q.left < p.right && p.top < q.bottom && q.top < p.bottom),
      );
      return cut ? "a panel is truncated" : meet ? "two panels overlap" : "";
    }, svg);
    if (overlaps) say(`${id}: in the SVG ${overlaps}`);
    const png = await fetched("png");
    if (png.length < 5000 || png.readUInt32BE(0) !== 0x89504e47)
      say(`${id}: the PNG has ${png.length} bytes`);
    const zoom = await figure.$("[data-action=zoom]");
    const view = await figure.$(".view");
    const axis = () =>
      view.evaluate((v) =>
        [...v.querySelectorAll(".role-axis-label text")].map((t) => t.textContent).sort().join(" "),
      );
    const still = await axis();
    const zoomable = await figure.evaluate((f) => {
      const numeric = (spec) =>
        ["x", "y"].some((axis) => spec.encoding?.[axis]?.type === "quantitative") ||
        (spec.layer ?? []).some(numeric);
      return JSON.parse(f.querySelector("script").textContent).panels.some((panel) => numeric(panel.spec));
    });
    if (zoomable !== !!zoom)
      say(`${id}: ${zoom ? "a" : "no"} zoom button for ${zoomable ? "numeric" : "nominal"} axes`);
    if (zoom) {
      await zoom.click();
      await settle();
      await page.waitForTimeout(150);
      await view.scrollIntoViewIfNeeded();
      const box = await view.boundingBox();
      await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
      for (let i = 0; i < 4; i++) await page.mouse.wheel(0, -240);
      await page.waitForTimeout(200);
      if ((await axis()) === still && id !== "raster") say(`${id}: zooming changes no axis`);
      await zoom.click();
      for (let i = 0; i < 20 && (await axis()) !== still; i++) await page.waitForTimeout(100);
      if ((await axis()) !== still) say(`${id}: leaving zoom does not restore the axes`);
    }
    // Moves the mouse over marks until a tooltip appears.
    await view.scrollIntoViewIfNeeded();
    const points = await view.evaluate((v) =>
      [...v.querySelectorAll(".role-mark path, .role-mark line")]
        .map((m) => m.getBoundingClientRect())
        .filter((b) => b.width > 1 && b.width < 400 && b.height > 1 && b.top > 0)
        .slice(0, 400)
        .filter((_, i, all) => i % Math.ceil(all.length / 25) === 0)
        .map((b) => [b.x + b.width / 2, b.y + b.height / 2]),
    );
    let tooltip = false;
    for (const [x, y] of points) {
      await page.mouse.move(x, y);
      tooltip = await page.evaluate(() => !!document.querySelector("#vg-tooltip-element.visible td.value"));
      if (tooltip) break;
    }
    if (!tooltip) say(`${id}: no tooltip on ${points.length} marks`);
    await page.mouse.move(2, 2);
    const numbers = await figure.$("[data-action=numbers]");
    await numbers.click();
    if ((await figure.$$(".numbers tbody tr")).length !== Math.min(400, data.rows.length))
      say(`${id}: not all numbers are shown`);
    await numbers.click();
  }
  const toggle = await page.$(".theme button");
  await toggle.click();
  await settled(page);
  if ((await page.evaluate(() => document.documentElement.dataset.theme)) !== "dark")
    say("the theme button does not change the theme");
  await page.screenshot({ path: join(shots, `${label}-toggled.png`), fullPage: false, timeout: 180000 });
}

const profile = mkdtempSync(join(tmpdir(), "page-test-"));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, headless: true, args: flags });
try {
  for (const [number, given] of process.argv.slice(2).entries()) {
    let file = resolve(given);
    if (existsSync(file) && statSync(file).isDirectory()) file = join(file, "report.html");
    if (!existsSync(file)) { problems.push(`${given}: no such page`); continue; }
    const started = problems.length;
    let figures = 0;
    // The first page is opened with all combinations of width and theme, the others with two that differ in
    // both. Buttons and tooltips are tested on the first three pages.
    const ways = [[1440, "light"], [390, "dark"], ...(number === 0 ? [[1440, "dark"], [390, "light"]] : [])];
    for (const [width, scheme] of ways) figures = await check(browser, file, width, scheme, number < 3);
    console.log(`${given}: ${figures} figures, ${problems.length - started} problems`);
  }
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
for (const problem of [...new Set(problems)]) console.error(`  ${problem}`);
process.exit(problems.length ? 1 : 0);
