import { sql } from 'kysely';
import { membershipOf, type RoomEvent, serverOfUser, splitStateMapKey } from '../../src/protocol/index.ts';
import type { StoredEvent } from '../../src/room-engine/index.ts';
import type { SimulatedServer } from './server.ts';
import type { Run } from './server-process.ts';

interface EventRow {
  readonly nid: number;
  readonly event_id: string;
  readonly stream: number | null;
  readonly flags: number;
  readonly redacted_by: number | null;
}

/** The room as one server has stored it. */
export interface View {
  readonly server: SimulatedServer;
  readonly run: Run;
  /** The nid of the room at this server. */
  readonly roomNid: number;
  /** Whether a user of the server is joined, according to the server itself. */
  readonly isJoined: boolean;
  readonly extremities: readonly string[];
  /** Event ids of the current state by `stateMapKey`. */
  readonly state: ReadonlyMap<string, string>;
  /** Memberships by user, from the table `memberships`. */
  readonly members: ReadonlyMap<string, string>;
  /** Memberships by user, from the events of the current state. */
  readonly membersInState: ReadonlyMap<string, string>;
  /** The rows of the room in the table `events`, by event id. */
  readonly rows: ReadonlyMap<string, EventRow>;
  /** The events of these rows, by event id. */
  readonly events: ReadonlyMap<string, StoredEvent>;
}

/** @returns `undefined` when the server does not know the room, or does not run */
export async function viewOf(server: SimulatedServer, roomId: string): Promise<View | undefined> {
  const { run } = server;
  const head = await run?.rooms.engine.heads.get(roomId);
  if (!run || !head) return undefined;
  const { database } = run.kernel;
  const reader = database.reader<never>();
  const { rows } = await sql<EventRow>`
    select nid, event_id, stream, flags, redacted_by from events where room_nid = ${head.roomNid}`.execute(
    reader,
  );
  const members = await sql<{ user_id: string; membership: string }>`
    select user_id, membership from memberships where room_nid = ${head.roomNid}`.execute(reader);
  const events = await run.rooms.engine.events.getMany(rows.map(({ nid }) => nid));
  const inState = [...head.state].flatMap(([key, { membership }]) => {
    const [type, userId] = splitStateMapKey(key);
    return type === 'm.room.member' ? [[userId, membership ?? 'none'] as const] : [];
  });
  return {
    server,
    run,
    roomNid: head.roomNid,
    isJoined: inState.some(
      ([userId, membership]) => membership === 'join' && serverOfUser(userId) === server.name,
    ),
    extremities: head.extremities.map(({ eventId }) => eventId).sort(),
    state: new Map([...head.state].map(([key, { eventId }]) => [key, eventId])),
    members: new Map(members.rows.map((row) => [row.user_id, row.membership])),
    membersInState: new Map(inState),
    rows: new Map(rows.map((row) => [row.event_id, row])),
    events: new Map([...events.values()].map((stored) => [stored.event.eventId, stored])),
  };
}

/** Describes an event in a few words. */
export function describeEvent(view: View, eventId: string | undefined): string {
  if (eventId === undefined) return 'nothing';
  const stored = view.events.get(eventId);
  if (!stored) return `${eventId} (unknown)`;
  const { type, sender, stateKey, content }: RoomEvent = stored.event;
  const what = type === 'm.room.member' ? membershipOf(content) : '';
  return `${eventId} (${type.replace('m.room.', '')} ${stateKey ?? ''} ${what} by ${sender})`;
}
