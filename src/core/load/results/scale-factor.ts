/** How many times its plan a load may be changed to by hand. */

/** Beyond it a typing error is likelier than a wish. */
export const SCALE_FACTOR_MAX = 100;

export function isScaleFactor(factor: number): boolean {
  return factor > 0 && factor <= SCALE_FACTOR_MAX;
}
