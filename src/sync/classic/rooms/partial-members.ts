import type { RoomHead, RoomReader, StoredEvent } from '../../../room-engine/index.ts';
import type { Timeline } from './timeline.ts';

/** Whether the state of a room was partial at a stream position, which may be in the past. */
export const isPartialAt = ({ isPartial, completedAt }: RoomHead, position: number): boolean =>
  isPartial || completedAt > position;

/**
 * Whether members of a room were missing at a stream position, which may be in the past. Members whose keys could not
 * be fetched do not count.
 */
export function lacksMembersAt(
  { lacksMembers, completedAt, partial, formerPartial }: RoomHead,
  position: number,
): boolean {
  return lacksMembers || ((partial ?? formerPartial)?.membersAt ?? completedAt) > position;
}

/**
 * Finds memberships that the partial state of a room lacks: a sender's membership is among the auth events of the
 * sender's events.
 * @param users the timeline senders to find memberships of
 * @returns membership events by user id, as they were at the user's first event in the timeline
 */
export async function membersFromAuthEvents(
  engine: RoomReader,
  { events }: Timeline,
  users: ReadonlySet<string>,
): Promise<Map<string, StoredEvent>> {
  const members = new Map<string, StoredEvent>();
  for (const { stored } of events) {
    const { sender, authEventIds } = stored.event;
    if (!users.has(sender) || members.has(sender)) continue;
    for (const auth of (await engine.events.getManyById(authEventIds)).values()) {
      const { type, stateKey } = auth.event;
      if (type === 'm.room.member' && stateKey === sender && !auth.rejected) members.set(sender, auth);
    }
  }
  return members;
}
