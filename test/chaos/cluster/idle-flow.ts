/** The job that a flood submits: it asks nothing of anybody, so that the target counts the other job alone. */

import { flow } from "hyperscalejs";

export default flow("idle", { vus: 1, iterations: 1 }, async () => undefined);
