import type { RoomHead, RoomReader } from '../../room-engine/index.ts';
import { visibleContent } from '../../room-engine/index.ts';

/** Whether guests may be in a room. Source: client-server API, "Guest Access". */
export async function guestsMayJoin(engine: RoomReader, head: RoomHead): Promise<boolean> {
  const entry = head.entry('m.room.guest_access', '');
  const stored = entry && (await engine.events.get(entry.nid));
  return stored !== undefined && visibleContent(stored)['guest_access'] === 'can_join';
}
