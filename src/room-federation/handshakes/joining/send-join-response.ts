import type { TimeSlices } from '../../../kernel/time-slices.ts';
import {
  authorize,
  type BuiltEvent,
  isJsonObject,
  isUserId,
  type JsonValue,
  type RoomEvent,
  type RoomVersion,
  type StateLookup,
  serverOfUser,
  stateMapKey,
} from '../../../protocol/index.ts';
import type { JoinResponse, VerifiedEvent } from '../../../room-engine/index.ts';
import type { Incoming } from '../../incoming.ts';
import { withSignaturesFrom } from '../added-signatures.ts';
import { HandshakeFailure } from '../handshake.ts';
import type { SendJoinResponse } from '../peers.ts';
import { dropWithoutAuthEvents, type StoredIds } from './complete-auth-events.ts';

/** The sent join and the expected content of the `send_join` response. */
export interface ExpectedResponse {
  readonly server: string;
  readonly roomId: string;
  readonly version: RoomVersion;
  /** The join as it was sent. */
  readonly sentJoin: BuiltEvent;
  /** Whether the server authorises the join to a restricted room, and so must sign it. */
  readonly isAuthorised: boolean;
  /** Looks up events of the room that are stored already. */
  readonly stored: StoredIds;
  readonly slices: TimeSlices;
}

/**
 * Returns the join to place in the room: the local event, with the signature of the server that authorises it.
 * @throws HandshakeFailure when that signature is missing or invalid, or the server returned another event
 */
export async function countersignedJoin(
  incoming: Pick<Incoming, 'verify'>,
  { event }: Pick<SendJoinResponse, 'event'>,
  { server, version, sentJoin, isAuthorised }: Omit<ExpectedResponse, 'stored' | 'slices'>,
): Promise<VerifiedEvent> {
  if (!isAuthorised) return sentJoin;
  const signed = event && withSignaturesFrom(server, sentJoin, event);
  if (!signed)
    throw new HandshakeFailure(
      server,
      'the join was not returned unchanged with the signature of the server',
    );
  const [verified] = await incoming.verify(version, [signed]);
  if (!verified || 'error' in verified || verified.event.eventId !== sentJoin.event.eventId) {
    throw new HandshakeFailure(server, 'the signature on the join is invalid');
  }
  return verified;
}

/**
 * Checks a `send_join` response. All its events must be state events of this room. The state must have at most one
 * event for each key and a create event with the expected version, and must allow the join. Leaves out events with
 * invalid signatures, and events whose auth events are missing. When an event fails because its keys could not be
 * fetched, the state counts as partial, because the keys may be available later.
 * Source: server-server API, `PUT /_matrix/federation/v2/send_join/{roomId}/{eventId}`.
 * @throws HandshakeFailure
 */
export async function checkSendJoinResponse(
  incoming: Pick<Incoming, 'verify'>,
  answer: SendJoinResponse,
  expected: ExpectedResponse,
): Promise<JoinResponse> {
  const { server, stored, slices } = expected;
  const event = await countersignedJoin(incoming, answer, expected);
  const sentState = await verifiedState(incoming, answer.state, expected);
  const sentChain = await verifiedState(incoming, answer.authChain, expected);
  const verified = { state: sentState.events, authChain: sentChain.events };
  const { state, authChain } = await dropWithoutAuthEvents(verified, stored, slices);
  const stateByKey = new Map<string, RoomEvent>();
  for (const { event: entry } of state) {
    const key = stateMapKey(entry.type, entry.stateKey!);
    if (stateByKey.has(key)) throw new HandshakeFailure(server, 'the state has two events for one key');
    stateByKey.set(key, entry);
  }
  checkCreate(stateByKey.get(stateMapKey('m.room.create', '')), expected);
  // This server is in the room only because of its own joined users, whatever the response claims.
  const isRemote = (name: string) => name !== serverOfUser(event.event.sender);
  const servers = answer.serversInRoom.filter(isRemote);
  if (answer.membersOmitted && servers.length === 0) {
    throw new HandshakeFailure(server, 'the response names no other server in the room');
  }
  const verdict = authorize(event.event, lookupIn(stateByKey, authChain, event.event));
  if (!verdict.allowed) throw new HandshakeFailure(server, `the join is not allowed: ${verdict.reason}`);
  if (answer.membersOmitted) return { event, state, authChain, partial: { servers, from: server } };
  if (!sentState.lacksKeys && !sentChain.lacksKeys) return { event, state, authChain };
  const statedServers = [...new Set([server, ...serversIn(answer.state)])].filter(isRemote);
  const partial = { servers: statedServers, from: server, membersAt: 0 };
  return { event, state, authChain, partial };
}

/** Servers with joined users according to the unverified state of the response. */
function serversIn(state: readonly JsonValue[]): string[] {
  return state.flatMap((pdu) => {
    if (!isJsonObject(pdu) || pdu['type'] !== 'm.room.member' || !isJsonObject(pdu['content'])) return [];
    const { state_key: userId, content } = pdu;
    return isUserId(userId) && content['membership'] === 'join' ? [serverOfUser(userId)] : [];
  });
}

/** Looks up the state before the join. Members that the state omits are looked up among the auth events of the join. */
function lookupIn(
  state: ReadonlyMap<string, RoomEvent>,
  authChain: readonly VerifiedEvent[],
  join: RoomEvent,
): StateLookup {
  const authEventIds = new Set(join.authEventIds);
  const auth = new Map(
    authChain
      .filter(({ event }) => authEventIds.has(event.eventId))
      .map(({ event }) => [stateMapKey(event.type, event.stateKey!), event]),
  );
  return (type, stateKey) => {
    const key = stateMapKey(type, stateKey);
    return state.get(key) ?? (type === 'm.room.member' ? auth.get(key) : undefined);
  };
}

async function verifiedState(
  incoming: Pick<Incoming, 'verify'>,
  jsons: readonly JsonValue[],
  { server, roomId, version }: ExpectedResponse,
): Promise<{ readonly events: VerifiedEvent[]; readonly lacksKeys: boolean }> {
  const events: VerifiedEvent[] = [];
  let lacksKeys = false;
  for (const result of await incoming.verify(version, jsons)) {
    if ('error' in result) {
      lacksKeys ||= result.isTemporary === true;
      continue;
    }
    if (result.event.roomId !== roomId)
      throw new HandshakeFailure(server, 'the response has events of another room');
    if (result.event.stateKey === undefined)
      throw new HandshakeFailure(server, 'the response has events that are not state');
    events.push(result);
  }
  return { events, lacksKeys };
}

function checkCreate(create: RoomEvent | undefined, { server, version }: ExpectedResponse): void {
  if (!create) throw new HandshakeFailure(server, 'the state has no create event');
  const { room_version: stated = '1' } = create.content;
  if (stated !== version.id) throw new HandshakeFailure(server, 'the room has another version');
}
