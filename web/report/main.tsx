/**
 * The page of report.html. Everything it shows comes from one JSON element that the writer
 * (src/reporters/file/html.ts) fills; it makes no request and needs no server.
 */

import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import type { RunSummary } from "../../src/core/run/results/model.ts";
import { Report } from "./report.tsx";
import "./styles.css";

const data = document.getElementById("summary")?.textContent ?? "null";
// Written by our own writer, so the shape is known; the page without data says so below.
const summary = JSON.parse(data) as RunSummary | null;
const app = document.getElementById("app");
if (app !== null) {
  app.textContent = "";
  render(
    summary === null ? (
      <p class="empty">This page holds no run. Open the report.html of a results folder.</p>
    ) : (
      <Report summary={summary} />
    ),
    app,
  );
}
