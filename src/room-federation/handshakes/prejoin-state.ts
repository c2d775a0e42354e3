import {
  isUserId,
  type JsonObject,
  type JsonValue,
  parseStrippedState,
  type RoomVersion,
  redactEvent,
  type StrippedState,
  stateMapKey,
  strippedState,
} from '../../protocol/index.ts';
import type { PrejoinKeys, RoomHead, RoomReader, StoredEvent } from '../../room-engine/index.ts';
import type { Incoming } from '../incoming.ts';

/** Of what another server shows of a room: entries that are looked at, and bytes of JSON that are kept. */
const [maxEntries, maxBytes] = [100, 128 * 1024];

const createKey = stateMapKey('m.room.create', '');

/**
 * The state that describes a room to another server, with an invite or in answer to a knock: whole events.
 * The create event is always among them.
 * @param inviter who sends the invite: their member event is among them, as people are shown it here, too
 */
export async function prejoinPdus(
  engine: RoomReader,
  head: RoomHead,
  keys: PrejoinKeys,
  inviter?: string,
): Promise<JsonObject[]> {
  const chosen = new Set([createKey, ...keys.select(head.state)]);
  if (inviter !== undefined) chosen.add(stateMapKey('m.room.member', inviter));
  const nids = [...chosen].flatMap((key) => head.state.get(key)?.nid ?? []);
  const events = await engine.events.getMany(nids);
  return nids.flatMap((nid) => {
    const stored = events.get(nid);
    return stored ? [visiblePdu(stored)] : [];
  });
}

function visiblePdu({ event, redactedBy }: StoredEvent): JsonObject {
  return redactedBy === undefined ? event.pdu : redactEvent(event).event.pdu;
}

/** What another server has said of a room that this one is not in. */
export interface PrejoinState {
  /** What clients may be shown of it. */
  readonly state: readonly StrippedState[];
  /** Why it is not as it should be; `undefined` when it is. */
  readonly problem: string | undefined;
}

/**
 * Reads the state that describes a room. Entries that are no events of that room, rightly signed, are left out; but
 * in rooms before version 12 servers may still send stripped state.
 * Source: server-server API, "Inviting to a room", `invite_room_state`, and "Knocking upon a room".
 */
export async function readPrejoinState(
  incoming: Pick<Incoming, 'verify'>,
  { roomId, version }: { readonly roomId: string; readonly version: RoomVersion },
  given: readonly JsonValue[],
): Promise<PrejoinState> {
  const entries = given.slice(0, maxEntries);
  const verified = await incoming.verify(version, entries);
  const kept = new Map<string, StrippedState>();
  let problem = given.length > maxEntries ? 'there are too many entries' : undefined;
  let bytes = 0;
  for (const [index, one] of verified.entries()) {
    const isRight = !('error' in one) && one.event.roomId === roomId && one.event.stateKey !== undefined;
    if (!isRight) problem ??= 'an entry is no event of the room';
    else if (
      one.event.type === 'm.room.create' &&
      (one.event.content['room_version'] ?? '1') !== version.id
    ) {
      problem ??= 'the create event is of another version';
    }
    const stripped = isRight
      ? strippedState(one.event)
      : version.roomId === 'create event'
        ? undefined
        : parseStrippedState(entries[index]!);
    if (!stripped || !isUserId(stripped.sender)) continue;
    bytes += Buffer.byteLength(JSON.stringify(stripped));
    if (bytes > maxBytes) {
      problem ??= 'it is too long';
      break;
    }
    kept.set(stateMapKey(stripped.type, stripped.state_key), stripped);
  }
  if (!kept.has(createKey)) problem ??= 'the create event is missing';
  return { state: [...kept.values()], problem };
}
