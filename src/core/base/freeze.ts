/** Makes plain data unchangeable, to the last part: it is shared by everybody who holds it. (VUC-7) */

/** Class instances, maps and bytes are left as they are: freezing them protects nothing. */
export function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null) return value;
  Object.freeze(value);
  for (const part of Object.values(value)) deepFreeze(part);
  return value;
}
