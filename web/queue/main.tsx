/** The queue's page: asks the node it came from, over JSON-RPC, for as long as somebody looks. */

import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "../shared/base.css";
import "./style.css";
import { takeToken } from "./api.ts";
import { QueuePage } from "./queue-page.tsx";

takeToken();

const root = document.getElementById("app");
if (root !== null) render(<QueuePage />, root);
