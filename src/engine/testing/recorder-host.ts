/** A recorder host whose time passes like the clock, without load. */

import type { RecorderHost } from "../recorder.ts";

export function recorderHost(measuredFrom = 0): RecorderHost {
  return {
    measuredMs: (at) => at - measuredFrom,
    clockAtMeasured: (ms) => ms + measuredFrom,
    load: { active: 1, target: 1 },
    lag: { vitalsOfWindow: () => ({ cpuMs: 0, lagMsMax: 0 }) },
  };
}
