/**
 * Twenty pictures per second at the cost of two. Numbers and charts that change faster than twice per second are hard
 * to read, so the whole picture is drawn every 500 ms; in between, the last one is copied and only what moves smoothly
 * (clock, progress) is redrawn. Changes made by a key show at once.
 */

import type { LiveRun } from "../core/load/results/live.ts";
import { drawDashboard, drawMoving } from "./dashboard.ts";
import { Grid, type Rect } from "./grid.ts";
import type { Scene } from "./scene.ts";

const WHOLE_PICTURE_MS = 500;

interface Drawn {
  readonly body: Grid;
  readonly workflows: Rect;
  readonly live: LiveRun;
  readonly scene: Scene;
}

export class LiveCanvas {
  #drawn: Drawn | null = null;

  draw(grid: Grid, live: LiveRun, scene: Scene): void {
    const drawn = this.#drawn;
    if (drawn !== null && !outdated(drawn, grid, live, scene)) {
      grid.copyFrom(drawn.body);
      drawMoving(grid, drawn.workflows, live, scene);
      return;
    }
    const workflows = drawDashboard(grid, live, scene);
    const spare = drawn?.body;
    const fits = spare?.columns === grid.columns && spare.rows === grid.rows;
    const body = fits && spare !== undefined ? spare : new Grid(grid.columns, grid.rows);
    body.copyFrom(grid);
    this.#drawn = workflows === null ? null : { body, workflows, live, scene };
  }
}

function outdated(
  { body, live: oldLive, scene: old }: Drawn,
  grid: Grid,
  live: LiveRun,
  scene: Scene,
): boolean {
  return (
    scene.nowMs - old.nowMs >= WHOLE_PICTURE_MS ||
    body.columns !== grid.columns ||
    body.rows !== grid.rows ||
    old.help !== scene.help ||
    old.pinned !== scene.pinned ||
    old.notice !== scene.notice ||
    old.messages !== scene.messages ||
    oldLive.phase !== live.phase ||
    oldLive.workflows.length !== live.workflows.length
  );
}
