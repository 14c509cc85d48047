/** Maximum factor by which a load can be scaled by hand. */

/** Beyond it a typing error is likelier than intent. */
export const SCALE_FACTOR_MAX = 100;

export function isScaleFactor(factor: number): boolean {
  return factor > 0 && factor <= SCALE_FACTOR_MAX;
}
