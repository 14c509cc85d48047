import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ACCEPTED_POLLS_MAX, SilenceWatch, UNANSWERED_POLLS_MAX } from "./silence.ts";

describe("a command that waits for an answer", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("gives up after five seconds without an answer, counted from the last one", () => {
    let answers = 7;
    const onSilent = vi.fn();
    new SilenceWatch(
      () => answers,
      () => UNANSWERED_POLLS_MAX,
      onSilent,
    );
    vi.advanceTimersByTime(4_500);
    answers++;
    vi.advanceTimersByTime(5_000);
    expect(onSilent).not.toHaveBeenCalled();
    vi.advanceTimersByTime(60_000);
    expect(onSilent).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is patient once the cancel is accepted, and stays quiet after its end", () => {
    let pollsMax = UNANSWERED_POLLS_MAX;
    const onSilent = vi.fn();
    const watch = new SilenceWatch(
      () => 1,
      () => pollsMax,
      onSilent,
    );
    vi.advanceTimersByTime(4_000);
    pollsMax = ACCEPTED_POLLS_MAX;
    vi.advanceTimersByTime(25_000);
    watch.end();
    vi.advanceTimersByTime(60_000);
    expect(onSilent).not.toHaveBeenCalled();
  });
});
