/**
 * Makes the pictures of the documents from a real run: docs/images/terminal.png is the live terminal
 * (in a pseudo-terminal, read back by a terminal emulator, drawn by a browser), docs/images/report.png
 * the report of the same run. Needs Chromium and `script` of util-linux.
 *
 *   npx tsx tools/pictures.ts
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import headless from "@xterm/headless";
import { type Browser, chromium } from "playwright-core";
import { startDemoTarget } from "../src/demo/server.ts";

const COLUMNS = 120;
const ROWS = 38;
const RUN_SECONDS = 30;
/** When the picture is taken, counted from the first load: late enough for charts with a shape. */
const PICTURE_AT_MS = 24_000;
const FLOW = "examples/metrics-and-thresholds.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const images = join(root, "docs", "images");
const results = mkdtempSync(join(tmpdir(), "hyperscale-pictures-"));
const emulator = new headless.Terminal({ cols: COLUMNS, rows: ROWS, allowProposedApi: true });
type Cell = NonNullable<ReturnType<typeof emulator.buffer.active.getNullCell>>;

mkdirSync(images, { recursive: true });
const target = await startDemoTarget({ port: 0 });
const browser = await chromium.launch({
  executablePath: process.env["CHROMIUM_PATH"] ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
try {
  const screen = await runInTerminal();
  await draw(browser, screen);
  await photographReport(browser);
} finally {
  await browser.close();
  await target.close();
  rmSync(results, { recursive: true, force: true });
}

/** Runs the workflow to its end; the screen is taken in the middle. */
async function runInTerminal(): Promise<string> {
  const command = [
    `stty cols ${COLUMNS} rows ${ROWS}`,
    `node bin/hyperscale.js run ${FLOW} --ui full --duration ${RUN_SECONDS}s --out ${results}`,
  ].join("; ");
  const env = { ...process.env, HYPERSCALE_TARGET: target.url, CI: "false" };
  const child = spawn("script", ["-qec", command, "/dev/null"], {
    cwd: root,
    env: { ...env, TERM: "xterm-256color", COLORTERM: "truecolor" },
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdout.on("data", (bytes: Buffer) => emulator.write(bytes));
  const ended = once(child, "exit");
  // The first run after a change builds for a while.
  while (target.stats().requests === 0) await sleep(100);
  await sleep(PICTURE_AT_MS / 2);
  // The server stalls once, so that the latency chart has something to show.
  target.stallOnce(400);
  await sleep(PICTURE_AT_MS / 2);
  await new Promise<void>((resolve) => emulator.write("", resolve));
  const screen = screenAsHtml();
  await ended;
  return screen;
}

function screenAsHtml(): string {
  const { active } = emulator.buffer;
  const rows: string[] = [];
  for (let y = 0; y < ROWS; y++) {
    const line = active.getLine(active.baseY + y);
    let html = "";
    for (let x = 0; x < COLUMNS; x++) {
      const cell = line?.getCell(x);
      if (cell === undefined || cell.getWidth() === 0) continue;
      const text = (cell.getChars() || " ").replace(/&/g, "&amp;").replace(/</g, "&lt;");
      html += `<span style="${styleOf(cell)};width:${cell.getWidth()}ch">${text}</span>`;
    }
    rows.push(`<div>${html}</div>`);
  }
  return rows.join("\n");
}

function styleOf(cell: Cell): string {
  const plain = { front: "#d8dee9", back: "transparent" };
  let front = colorOf(cell.isFgRGB(), cell.isFgPalette(), cell.getFgColor()) ?? plain.front;
  let back = colorOf(cell.isBgRGB(), cell.isBgPalette(), cell.getBgColor()) ?? plain.back;
  if (cell.isInverse()) [front, back] = [back === "transparent" ? "#11151c" : back, front];
  const weight = cell.isBold() ? ";font-weight:bold" : "";
  const dim = cell.isDim() ? ";opacity:.6" : "";
  return `color:${front};background:${back}${weight}${dim}`;
}

const BASIC = [
  ...["#2e3440", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9"],
  ...["#5c6370", "#ff7a85", "#b5e890", "#ffd98c", "#7cc4ff", "#dd92f2", "#70d7e4", "#ffffff"],
];

function colorOf(rgb: boolean, palette: boolean, value: number): string | null {
  if (rgb) return `#${value.toString(16).padStart(6, "0")}`;
  if (!palette) return null;
  if (value < 16) return BASIC[value] ?? null;
  if (value >= 232) return gray(8 + (value - 232) * 10);
  const steps = [0, 95, 135, 175, 215, 255];
  const cube = value - 16;
  const part = (divisor: number): number => steps[Math.floor(cube / divisor) % 6] ?? 0;
  return `rgb(${part(36)},${part(6)},${part(1)})`;
}

function gray(level: number): string {
  return `rgb(${level},${level},${level})`;
}

async function draw(from: Browser, screen: string): Promise<void> {
  const page = await from.newPage({ deviceScaleFactor: 1.5 });
  await page.setContent(`<style>
    body { margin: 0; }
    main { display: inline-block; padding: 14px 18px; background: #11151c; }
    div { font: 13px/15px "DejaVu Sans Mono", monospace; white-space: pre; height: 15px; }
    span { display: inline-block; height: 15px; }
  </style><main>${screen}</main>`);
  await page.locator("main").screenshot({ path: join(images, "terminal.png") });
  await page.close();
}

async function photographReport(from: Browser): Promise<void> {
  const page = await from.newPage({
    viewport: { width: 1320, height: 1560 },
    colorScheme: "light",
  });
  await page.goto(pathToFileURL(join(results, "report.html")).href);
  await page.locator("canvas").nth(2).waitFor();
  await page.waitForTimeout(500);
  await page.screenshot({ path: join(images, "report.png") });
  await page.close();
}
