import type { RoomEvent } from '../../protocol/index.ts';
import { isHidden, type RoomReader, type StoredEvent } from '../../room-engine/index.ts';
import type { NewEvent, RoomStateView } from '../api/index.ts';
import type { ModuleContext } from '../calls/module-context.ts';

/**
 * Returns a view of a room's current state.
 * @param roomId absent for a room that does not exist yet: its state is empty
 */
export function roomStateOf(
  engine: () => RoomReader,
  roomId: string | undefined,
  context: ModuleContext,
): RoomStateView {
  const head = () => (roomId === undefined ? undefined : engine().heads.get(roomId));
  return {
    get: (type, stateKey) =>
      context.leave(async () => {
        const entry = (await head())?.entry(type, stateKey);
        const stored = entry && (await engine().events.get(entry.nid));
        return stored && { ...moduleEvent(stored.event), stateKey };
      }),
    membership: (userId) => context.leave(async () => (await head())?.membership(userId)),
  };
}

/** Whether clients see an event. `onNewEvent` of modules receives only such events. */
export const isShown = (stored: StoredEvent): boolean => !isHidden(stored);

/**
 * Returns an event as modules receive it. Its content is a copy, so that a change of the copy does not change the
 * event.
 */
export function moduleEvent(event: RoomEvent): NewEvent {
  const { eventId, roomId, type, stateKey, sender, content, originServerTs } = event;
  return {
    eventId,
    roomId,
    type,
    ...(stateKey !== undefined && { stateKey }),
    sender,
    content: structuredClone(content),
    originServerTs,
  };
}
