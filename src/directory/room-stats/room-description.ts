import {
  type JsonObject,
  type RoomFacts,
  redactEvent,
  roomFactsOf,
  serverOfUser,
  stateMapKey,
} from '../../protocol/index.ts';
import type { RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';

/** A room as described to users outside of it. */
export interface RoomDescription extends Omit<RoomFacts, 'roomVersion'> {
  readonly roomId: string;
  /** Absent for a room of another server, if that server does not state the version. */
  readonly roomVersion: string | undefined;
  readonly joinedMembers: number;
}

/** A description with properties for the server's own use. */
export interface RoomDetails extends RoomDescription {
  readonly roomNid: number;
  readonly roomVersion: string;
  readonly historyVisibility: string;
  readonly creator: string;
  readonly federatable: boolean;
  readonly joinedLocalMembers: number;
  readonly invitedMembers: number;
  readonly stateEvents: number;
}

/** The state event types that `roomFactsOf` reads. */
const types = [
  'm.room.create',
  'm.room.name',
  'm.room.canonical_alias',
  'm.room.topic',
  'm.room.avatar',
  'm.room.join_rules',
  'm.room.guest_access',
  'm.room.history_visibility',
  'm.room.encryption',
] as const;

/** Whether state of this type is part of the description. */
export const isDescriptive = (type: string): boolean =>
  type === 'm.room.member' || (types as readonly string[]).includes(type);

/** Describes the current state of a room. */
export async function describeRoom(engine: RoomReader, head: RoomHead): Promise<RoomDescription> {
  const state = await descriptiveState(engine, head);
  return describe(head, state);
}

/** Describes a room with its details. Reads all members, so it must be called by followers of streams only, and not for requests. */
export async function describeRoomInDetail(
  engine: RoomReader,
  head: RoomHead,
  serverName: string,
): Promise<RoomDetails> {
  const state = await descriptiveState(engine, head);
  const create = state.get('m.room.create')?.event;
  let joinedLocalMembers = 0;
  for (const [userId, membership] of head.members) {
    if (membership === 'join' && serverOfUser(userId) === serverName) joinedLocalMembers++;
  }
  const visibility = contentOf(state.get('m.room.history_visibility'))?.['history_visibility'];
  return {
    ...describe(head, state),
    roomNid: head.roomNid,
    historyVisibility: typeof visibility === 'string' ? visibility : 'shared',
    creator: create?.sender ?? '',
    federatable: create?.content['m.federate'] !== false,
    joinedLocalMembers,
    invitedMembers: head.memberCount('invite'),
    stateEvents: head.state.size,
  };
}

function describe(head: RoomHead, state: ReadonlyMap<string, StoredEvent>): RoomDescription & RoomFacts {
  return {
    ...roomFactsOf((type, stateKey) => (stateKey === '' ? contentOf(state.get(type)) : undefined)),
    roomId: head.roomId,
    joinedMembers: head.memberCount('join'),
  };
}

async function descriptiveState(engine: RoomReader, head: RoomHead): Promise<Map<string, StoredEvent>> {
  const nids = types.map((type) => head.state.get(stateMapKey(type, ''))?.nid);
  const events = await engine.events.getMany(nids.filter((nid) => nid !== undefined));
  return new Map([...events.values()].map((stored) => [stored.event.type, stored]));
}

/** Returns the content of an event after redactions. */
export function contentOf(stored: StoredEvent | undefined): JsonObject | undefined {
  if (stored?.redactedBy === undefined) return stored?.event.content;
  return redactEvent(stored.event).event.content;
}
