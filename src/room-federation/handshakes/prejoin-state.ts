import type { Database } from '../../kernel/database/index.ts';
import {
  isUserId,
  type JsonObject,
  type JsonValue,
  parseJson,
  parseStrippedState,
  type RoomVersion,
  redactEvent,
  type StrippedState,
  stateMapKey,
  strippedState,
} from '../../protocol/index.ts';
import type {
  PrejoinStateKeys,
  RoomHead,
  RoomReader,
  RoomTables,
  StoredEvent,
} from '../../room-engine/index.ts';
import type { Incoming } from '../incoming.ts';

/** Maximum number of entries of received stripped state that are read. */
const maxEntries = 100;

/** Maximum bytes of JSON of stripped state that are stored. */
const maxBytes = 128 * 1024;

const createKey = stateMapKey('m.room.create', '');

/**
 * Returns the PDUs of the state that describes a room, which a remote server receives with an invite or in response to
 * a knock. The create event is always included.
 * @param inviter the sender of the invite, whose member event is included, as it is for local invites
 */
export async function prejoinPdus(
  engine: RoomReader,
  head: RoomHead,
  keys: PrejoinStateKeys,
  inviter?: string,
): Promise<JsonObject[]> {
  const keysToSend = new Set([createKey, ...keys.select(head.state)]);
  if (inviter !== undefined) keysToSend.add(stateMapKey('m.room.member', inviter));
  const nids = [...keysToSend].flatMap((key) => head.state.get(key)?.nid ?? []);
  const events = await engine.events.getMany(nids);
  return nids.flatMap((nid) => {
    const stored = events.get(nid);
    return stored ? [visiblePdu(stored)] : [];
  });
}

function visiblePdu({ event, redactedBy }: StoredEvent): JsonObject {
  return redactedBy === undefined ? event.pdu : redactEvent(event).event.pdu;
}

/** A description that a remote server sent of a room that this server is not in. */
export interface PrejoinState {
  /** The stripped state for clients. */
  readonly state: readonly StrippedState[];
  /**
   * Why the description is invalid; undefined when it is valid. An entry that is only stripped state counts as a
   * problem in all room versions, although before version 12 it is allowed and `state` contains it.
   */
  readonly problem: string | undefined;
}

/**
 * Reads the state that describes a room: from valid signed events of the room and, in room versions before 12, also
 * from stripped state, which servers may still send. Leaves out other entries.
 * Source: server-server API, "Inviting to a room", `invite_room_state`, and "Knocking upon a room".
 */
export async function readPrejoinState(
  incoming: Pick<Incoming, 'verify'>,
  { roomId, version }: { readonly roomId: string; readonly version: RoomVersion },
  received: readonly JsonValue[],
): Promise<PrejoinState> {
  const entries = received.slice(0, maxEntries);
  const verified = await incoming.verify(version, entries);
  const stateByKey = new Map<string, StrippedState>();
  let problem = received.length > maxEntries ? 'there are too many entries' : undefined;
  let bytes = 0;
  for (const [index, result] of verified.entries()) {
    const isEventOfRoom =
      !('error' in result) && result.event.roomId === roomId && result.event.stateKey !== undefined;
    if (!isEventOfRoom) problem ??= 'an entry is not an event of the room';
    else if (
      result.event.type === 'm.room.create' &&
      (result.event.content['room_version'] ?? '1') !== version.id
    ) {
      problem ??= 'the create event has another version';
    }
    const stripped = isEventOfRoom
      ? strippedState(result.event)
      : version.roomId === 'create event'
        ? undefined
        : parseStrippedState(entries[index]!);
    if (!stripped || !isUserId(stripped.sender)) continue;
    bytes += Buffer.byteLength(JSON.stringify(stripped));
    if (bytes > maxBytes) {
      problem ??= 'the state is too long';
      break;
    }
    stateByKey.set(stateMapKey(stripped.type, stripped.state_key), stripped);
  }
  if (!stateByKey.has(createKey)) problem ??= 'the create event is missing';
  return { state: [...stateByKey.values()], problem };
}

/** Returns the stripped state that a user received from a remote server with an invite or a knock. */
export async function storedStrippedState(
  database: Database,
  roomId: string,
  userId: string,
): Promise<readonly StrippedState[]> {
  const row = await database
    .reader<RoomTables>()
    .selectFrom('stripped_state')
    .innerJoin('rooms', 'rooms.room_nid', 'stripped_state.room_nid')
    .select('json')
    .where('rooms.room_id', '=', roomId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  if (!row) return [];
  const entries = parseJson(row.json) as readonly JsonValue[];
  return entries.flatMap((entry) => parseStrippedState(entry) ?? []);
}
