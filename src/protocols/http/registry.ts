/**
 * The parts and calls that the workflow file made while it was loaded. Constants at the top of a
 * file are invisible to the engine, so each prepared thing enters itself here, and the executor
 * core prepares all of them exactly once before measuring begins. (OPT-1, OPT-3)
 */

import type { Preparable } from "./parts.ts";

export const partsInUse = new Set<Preparable>();
