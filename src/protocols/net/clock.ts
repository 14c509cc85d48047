/** The monotonic clock of measurements, in milliseconds with fractions. */
export const clock: () => number = performance.now.bind(performance);
