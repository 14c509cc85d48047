// Installs and builds what is missing: the first half of every npm script that needs both.

import { buildStale, installMissing } from "./bootstrap.mjs";

installMissing();
buildStale();
