import { ForgottenRooms, RoomPurge, type Rooms } from '../rooms/index.ts';
import { slices } from '../slices.ts';
import type { Kernel } from './kernel.ts';

/** The rows that the slices store for rooms. */
export const roomRows = slices.flatMap((slice) => slice.roomRows ?? []);

/** Deletes rooms with the rows of all slices; to be called before jobs are started. */
export function openRoomPurge(kernel: Kernel, { engine }: Rooms): RoomPurge {
  const purge = new RoomPurge({ ...kernel, engine, rows: roomRows });
  new ForgottenRooms({
    ...kernel,
    log: kernel.namedLog('rooms'),
    engine,
    purge,
    period: kernel.configuration.rooms.forgotten_room_retention_period,
  });
  return purge;
}
