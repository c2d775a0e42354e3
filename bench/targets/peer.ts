import { pidListeningOn, usageOf } from '../load/process-usage.ts';
import type { Target } from '../target.ts';

/** Returns a homeserver that is running already. Its resource usage is measured only if it runs on this machine. */
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
