import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Database } from '../kernel/database/index.ts';
import { MessageQueues } from './queues.ts';
import { toDeviceRoutes } from './routes.ts';
import { toDeviceSyncSource } from './sync-source.ts';
import { ToDevice, type ToDeviceDeps } from './to-device.ts';

/** Opens to-device messages. */
export function openToDevice(deps: Omit<ToDeviceDeps, 'queues'> & { readonly database: Database }) {
  const reading = openToDeviceReading(deps);
  const toDevice = new ToDevice({ ...deps, queues: reading.queues });
  return { ...reading, toDevice, routes: toDeviceRoutes(toDevice) };
}

/** Opens the parts that syncs use. A process that only reads needs no other parts. */
export function openToDeviceReading({
  database,
  caches,
}: {
  readonly database: Database;
  readonly caches: CacheRegistry;
}) {
  const queues = new MessageQueues(database, caches);
  return { queues, syncSources: [toDeviceSyncSource(queues)], streams: [queues.toDeviceStream] };
}
