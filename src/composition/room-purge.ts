import { accountDataRoomRows } from '../account-data/index.ts';
import { delayedEventRoomRows } from '../delayed-events/index.ts';
import { directoryRoomRows } from '../directory/index.ts';
import { federationRoomRows } from '../federation/index.ts';
import type { Database } from '../kernel/database/index.ts';
import { pushRoomRows } from '../push/index.ts';
import { receiptRoomRows } from '../receipts/index.ts';
import { relationRoomRows } from '../relations/index.ts';
import { ForgottenRooms, RoomPurge, type RoomRows, type Rooms } from '../rooms/index.ts';
import { searchRoomRows } from '../search/index.ts';
import { serverNoticeRoomRows } from '../server-notices/index.ts';
import { syncRoomRows } from '../sync/index.ts';
import { threadSubscriptionRoomRows } from '../thread-subscriptions/index.ts';
import type { Kernel } from './kernel.ts';

/** The rows that the slices store for rooms. */
export const roomRows = (database: Database): readonly RoomRows[] => [
  accountDataRoomRows,
  delayedEventRoomRows,
  directoryRoomRows,
  federationRoomRows,
  pushRoomRows,
  receiptRoomRows,
  relationRoomRows,
  searchRoomRows(database),
  serverNoticeRoomRows,
  syncRoomRows,
  threadSubscriptionRoomRows,
];

/** Deletes rooms with the rows of all slices; to be called before jobs are started. */
export function openRoomPurge(kernel: Kernel, { engine }: Rooms): RoomPurge {
  const purge = new RoomPurge({ ...kernel, engine });
  for (const rows of roomRows(kernel.database)) purge.register(rows);
  const forgotten = new ForgottenRooms({
    ...kernel,
    log: kernel.namedLog('rooms'),
    engine,
    purge,
    period: kernel.configuration.rooms.forgotten_room_retention_period,
  });
  forgotten.register();
  return purge;
}
