import { statfs } from 'node:fs/promises';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import { type Metrics, PeriodicReading } from '../kernel/observability/index.ts';
import type { MediaTables } from './tables.ts';

/** Minimum milliseconds between two computations of the sums over the tables of media. */
const interval = 300_000;

/** Exposes the number and bytes of stored media, and the free space of their disk. */
export function reportMedia(
  metrics: Metrics,
  { database, clock, directory }: { database: Database; clock: Clock; directory: string },
): void {
  const sums = new PeriodicReading(clock, interval, async () => ({
    local: await sumOf(database, 'local_media'),
    remote: await sumOf(database, 'remote_media'),
  }));
  const gauge = (name: string, help: string, member: 'count' | 'bytes') =>
    metrics.gauge({
      name,
      help,
      labelNames: ['origin'],
      async collect() {
        for (const [origin, sum] of Object.entries((await sums.value()) ?? {}))
          this.set({ origin }, sum[member]);
      },
    });
  gauge('server_media_files', 'Stored media of local users and copies of remote media.', 'count');
  gauge('server_media_bytes', 'Bytes of stored media, without thumbnails.', 'bytes');
  metrics.gauge({
    name: 'server_media_disk_free_bytes',
    help: 'Free bytes of the disk of media_store_path.',
    async collect() {
      const disk = await statfs(directory).catch(() => undefined);
      if (disk) this.set(disk.bavail * disk.bsize);
    },
  });
}

/** Returns the bytes of stored media, without thumbnails. Reads whole tables. */
export async function storedMediaBytes(database: Database): Promise<number> {
  return (await sumOf(database, 'local_media')).bytes + (await sumOf(database, 'remote_media')).bytes;
}

async function sumOf(database: Database, table: 'local_media' | 'remote_media') {
  const { count, bytes } = await database
    .scanner<MediaTables>()
    .selectFrom(table)
    .select(({ fn }) => [
      fn.count<number>('size').as('count'),
      fn.sum<number | string | null>('size').as('bytes'),
    ])
    .executeTakeFirstOrThrow();
  return { count: Number(count), bytes: Number(bytes ?? 0) };
}
