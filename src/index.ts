export { type Duration, formatDuration, parseDuration } from "./core/time/duration.ts";
