/** The page of trends.html: the last runs of one workflow, from one element that the writer fills. */

import { render } from "preact";
import type { Trends } from "../../src/reporters/trends/trends.ts";
import "../shared/base.css";
import { readPageData } from "../shared/page-data.ts";
import { TrendsPage } from "./trends.tsx";

const app = document.getElementById("app");
// Written by our own writer, so the shape is known; the page without data says so below.
const data = (await readPageData()) as Trends | null;
if (app !== null) {
  app.textContent = "";
  render(
    data === null ? (
      <p class="empty">This page holds no runs. `hyperscale trends DIR` writes one that does.</p>
    ) : (
      <TrendsPage trends={data} />
    ),
    app,
  );
}
