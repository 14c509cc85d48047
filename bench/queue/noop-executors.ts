/** Executors of the isolation row: run in processes of their own. */

export default {
  noop(): void {
    // Measures only the round trip.
  },
};
