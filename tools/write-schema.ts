/** Writes docs/reference/summary.schema.json from the decoder of summaries; a test holds the two together. */

import { writeFileSync } from "node:fs";
import { summaryJsonSchema } from "../src/reporters/file/schema.ts";

const file = new URL("../docs/reference/summary.schema.json", import.meta.url);
writeFileSync(file, `${JSON.stringify(summaryJsonSchema(), null, 2)}\n`);
