/** Executors of the row about isolation: run in processes of their own. */

export default {
  noop(): void {
    // What is measured is the way there and back.
  },
};
