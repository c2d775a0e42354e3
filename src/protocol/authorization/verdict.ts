/** The decision of the authorization rules on an event. The reason is for logs and error messages. */
export type Verdict = { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

const allowed: Verdict = Object.freeze({ allowed: true });

/** Returns the verdict that allows an event. */
export function allow(): Verdict {
  return allowed;
}

/** Returns the verdict that rejects an event. */
export function reject(reason: string): Verdict {
  return { allowed: false, reason };
}

/** Allows an event if a condition holds. @param otherwise the reason to reject it if the condition does not hold */
export function allowIf(condition: boolean, otherwise: string): Verdict {
  return condition ? allowed : reject(otherwise);
}
