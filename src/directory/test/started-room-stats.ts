import type { RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { RoomStats } from '../room-stats/room-stats.ts';

/** Starts the statistics of the rooms of a test. */
export async function startRoomStats({
  engine,
  database,
  streams,
  clock,
}: Pick<RoomsUnderTest, 'engine' | 'database' | 'streams' | 'clock'>): Promise<RoomStats> {
  const stats = new RoomStats({ engine, database, streams, clock, log: silentLogger, serverName: 'test' });
  await stats.start();
  return stats;
}
