/** The job that a flood submits: it sends no requests, so that the target counts only the other job. */

import { flow } from "hyperscalejs";

export default flow("idle", { vus: 1, iterations: 1 }, async () => undefined);
