/** Kinds of clients, as usage statistics name them. */
export type ClientKind = 'android' | 'ios' | 'electron' | 'web' | 'unknown';

/** Kinds of Element's apps, whose user agents contain `riot` or `element`, and the kind. */
const appKinds = ['electron', 'android', 'ios'] as const;

/** Returns the kind of a client by its user agent, with the rules of the reference server. */
export function clientKind(userAgent: string | undefined): ClientKind {
  const agent = userAgent?.toLowerCase() ?? '';
  if (agent.includes('riot') || agent.includes('element')) {
    return appKinds.find((kind) => agent.includes(kind)) ?? 'unknown';
  }
  return agent.includes('mozilla') || agent.includes('gecko') ? 'web' : 'unknown';
}
