import { type JsonObject, roomSummaryOf, selectHeroes } from '../../protocol/index.ts';
import { type RoomEngine, type RoomHead, visibleContent } from '../../rooms/index.ts';
import type { Timeline } from './timeline.ts';

/** A change of these may change the summary. */
const summaryTypes = new Set(['m.room.member', 'm.room.name', 'm.room.canonical_alias']);

/** Whether a client that knows the room must be told its summary again. */
export function mayChangeSummary(timeline: Timeline | undefined): boolean {
  if (!timeline) return false;
  return (
    timeline.hidesState ||
    timeline.events.some(
      ({ stored: { event } }) => event.stateKey !== undefined && summaryTypes.has(event.type),
    )
  );
}

/** The users after whom a room is called. */
export function heroesOf(head: RoomHead, userId: string): string[] {
  return selectHeroes(membersOf(head), userId);
}

/** Heroes and counts. Source: client-server API, `GET /sync`, "RoomSummary". */
export async function summaryOf(
  engine: RoomEngine,
  head: RoomHead,
  heroes: readonly string[],
): Promise<JsonObject> {
  const [name, canonicalAlias] = await Promise.all([
    stateText(engine, head, 'm.room.name', 'name'),
    stateText(engine, head, 'm.room.canonical_alias', 'alias'),
  ]);
  const [joinedCount, invitedCount] = [head.memberCount('join'), head.memberCount('invite')];
  return roomSummaryOf({ name, canonicalAlias, heroes, joinedCount, invitedCount });
}

/** A text in the content of an entry of the current state. */
async function stateText(
  engine: RoomEngine,
  head: RoomHead,
  type: string,
  key: string,
): Promise<string | undefined> {
  const entry = head.entry(type, '');
  const stored = entry && (await engine.events.get(entry.nid));
  const value = stored && visibleContent(stored)[key];
  return typeof value === 'string' ? value : undefined;
}

function* membersOf(head: RoomHead) {
  for (const [userId, membership] of head.members) yield { userId, membership };
}
