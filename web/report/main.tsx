/**
 * The page of report.html. Everything it shows comes from one element that the writer (src/reporters/file/html.ts)
 * fills; it makes no request and needs no server.
 */

import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import { unpackSummary } from "../../src/reporters/file/packed.ts";
import type { PageData } from "../../src/reporters/file/page-data.ts";
import "../shared/base.css";
import { readPageData } from "../shared/page-data.ts";
import { Report } from "./report.tsx";

const app = document.getElementById("app");
// Written by our own writer, so the shape is known; the page without data says so below.
const data = (await readPageData()) as PageData | null;
if (app !== null) {
  app.textContent = "";
  render(
    data === null ? (
      <p class="empty">This page holds no run. Open the report.html of a results folder.</p>
    ) : (
      <Report
        summary={unpackSummary(data.run)}
        baseline={
          data.baseline === null
            ? null
            : { ...data.baseline, summary: unpackSummary(data.baseline.run) }
        }
      />
    ),
    app,
  );
}
