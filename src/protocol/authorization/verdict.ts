/** The decision of the authorization rules on an event. The reason is for logs and error messages. */
export type Verdict = { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

const allowed: Verdict = Object.freeze({ allowed: true });

export function allow(): Verdict {
  return allowed;
}

export function reject(reason: string): Verdict {
  return { allowed: false, reason };
}

export function allowIf(condition: boolean, otherwise: string): Verdict {
  return condition ? allowed : reject(otherwise);
}
