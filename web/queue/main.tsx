/** The queue's page: polls the node that served it, over JSON-RPC, while the page is visible. */

import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "../shared/base.css";
import "./style.css";
import { takeToken } from "./api.ts";
import { QueuePage } from "./queue-page.tsx";

takeToken();

const root = document.getElementById("app");
if (root !== null) render(<QueuePage />, root);
