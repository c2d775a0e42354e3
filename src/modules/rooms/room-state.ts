import { isHidden, type RoomReader, type StoredEvent } from '../../room-engine/index.ts';
import type { NewEvent, RoomStateView } from '../api/index.ts';

/** Returns a view of a room's current state. @param roomId absent for rooms that do not exist yet, whose state is empty */
export function roomStateOf(engine: RoomReader, roomId: string | undefined): RoomStateView {
  const head = () => (roomId === undefined ? undefined : engine.heads.get(roomId));
  return {
    async get(type, stateKey) {
      const entry = (await head())?.entry(type, stateKey);
      const stored = entry && (await engine.events.get(entry.nid));
      return stored && { ...moduleEvent(stored), stateKey };
    },
    async membership(userId) {
      return (await head())?.membership(userId);
    },
  };
}

/** Whether clients see an event, so that modules receive it. */
export const isShown = (stored: StoredEvent): boolean => !isHidden(stored);

/** Returns an event as modules receive it. */
export function moduleEvent({ event }: StoredEvent): NewEvent {
  const { eventId, roomId, type, stateKey, sender, content, originServerTs } = event;
  return {
    eventId,
    roomId,
    type,
    ...(stateKey !== undefined && { stateKey }),
    sender,
    content,
    originServerTs,
  };
}
