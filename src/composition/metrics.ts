import { countUsers } from '../accounts/index.ts';
import { countDevices } from '../devices/index.ts';
import { reportJobs } from '../kernel/jobs/index.ts';
import { PeriodicReading } from '../kernel/observability/index.ts';
import { ownSoftware } from '../kernel/outbound/index.ts';
import { reportMedia } from '../media/index.ts';
import { countRooms, type RoomReader } from '../room-engine/index.ts';
import type { Kernel } from './kernel.ts';

/** Minimum milliseconds between two counts of whole tables. */
const interval = 300_000;

/** Exposes numbers of the whole server for a dashboard. Numbers that need queries are read at most once per `interval`. */
export function reportServer(kernel: Kernel, engine: RoomReader): void {
  const { metrics, database, clock, serverName, configuration } = kernel;
  if (!metrics) return;
  const { name, version } = ownSoftware();
  metrics
    .gauge({
      name: 'server_build_info',
      help: 'Version of the server, as a label.',
      labelNames: ['name', 'version', 'node'],
    })
    .set({ name, version, node: process.versions.node }, 1);
  const events = metrics.counter({
    name: 'server_events_persisted_total',
    help: 'Events that were added to timelines, by origin.',
    labelNames: ['origin'],
  });
  events.inc({ origin: 'local' }, 0);
  events.inc({ origin: 'remote' }, 0);
  engine.stream.subscribe(({ onTimeline, stored }) => {
    if (!onTimeline) return;
    const isLocal = stored.event.sender.endsWith(`:${serverName}`);
    events.inc({ origin: isLocal ? 'local' : 'remote' });
  });
  const counts = new PeriodicReading(clock, interval, async () => ({
    users: await countUsers(database),
    rooms: await countRooms(database),
    devices: await countDevices(database),
  }));
  metrics.gauge({
    name: 'server_users',
    help: 'Accounts by kind.',
    labelNames: ['kind'],
    async collect() {
      for (const [kind, count] of Object.entries((await counts.value())?.users ?? {}))
        this.set({ kind }, count);
    },
  });
  for (const what of ['rooms', 'devices'] as const) {
    metrics.gauge({
      name: `server_${what}`,
      help: what === 'rooms' ? 'Rooms that this server is or was in.' : 'Devices of local users.',
      async collect() {
        const count = (await counts.value())?.[what];
        if (count !== undefined) this.set(count);
      },
    });
  }
  reportJobs(metrics, database, clock);
  reportMedia(metrics, { database, clock, directory: configuration.media.media_store_path });
}
