import { describe, expect, it } from "vitest";
import { browserProblem } from "./open-page.ts";

describe("a browser", () => {
  it("can be opened where there is a screen, or a system with one", () => {
    expect(browserProblem("darwin", {})).toBeNull();
    expect(browserProblem("win32", {})).toBeNull();
    expect(browserProblem("linux", { DISPLAY: ":0" })).toBeNull();
    expect(browserProblem("linux", { WAYLAND_DISPLAY: "wayland-0" })).toBeNull();
  });

  it("cannot be opened on a server without a screen", () => {
    expect(browserProblem("linux", {})).toContain("DISPLAY");
    expect(browserProblem("linux", { DISPLAY: "" })).toContain("DISPLAY");
  });
});
