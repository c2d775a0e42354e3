import { pidListeningOn, usageOf } from '../load/process-usage.ts';
import type { Target } from '../target.ts';

/** A running homeserver. Its resource usage is known when it runs on this machine. */
export function peer(url: string, registrationSecret: string): Target {
  const { port } = new URL(url);
  const pid = pidListeningOn(Number(port || 80));
  return {
    kind: 'peer',
    url: url.replace(/\/$/, ''),
    registrationSecret,
    usage: () => (pid === undefined ? undefined : usageOf([pid])),
    async close() {},
  };
}
