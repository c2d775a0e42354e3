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
import { HandshakeFailure } from '../handshake-failure.ts';
import type { SendJoinResponse } from '../peers.ts';
import { dropWithoutAuthEvents, type StoredIds } from './complete-auth-events.ts';

/** What an answer to `send_join` is held against. */
export interface ExpectedResponse {
  readonly server: string;
  readonly roomId: string;
  readonly version: RoomVersion;
  /** The join as it was sent. */
  readonly own: BuiltEvent;
  /** Whether the server lets the user into a restricted room, and so has to sign the join. */
  readonly isAuthorised: boolean;
  /** What is stored of the room, from earlier times. */
  readonly stored: StoredIds;
  readonly slices: TimeSlices;
}

/**
 * The join as it goes into the room: our own, with the signature of the server that authorises it.
 * @throws HandshakeFailure when that is not there
 */
export async function countersignedJoin(
  incoming: Pick<Incoming, 'verify'>,
  { event }: Pick<SendJoinResponse, 'event'>,
  { server, version, own, isAuthorised }: Omit<ExpectedResponse, 'stored' | 'slices'>,
): Promise<VerifiedEvent> {
  if (!isAuthorised) return own;
  const signed = event && withSignaturesFrom(server, own, event);
  if (!signed) throw new HandshakeFailure(server, 'the join has not come back signed');
  const [verified] = await incoming.verify(version, [signed]);
  if (!verified || 'error' in verified || verified.event.eventId !== own.event.eventId) {
    throw new HandshakeFailure(server, 'the signature on the join is not right');
  }
  return verified;
}

/**
 * Checks a room that another server has sent: signatures and hashes of all events, that they are of this room and
 * make one state with a create event of the expected version, and that this state lets the user in. Events whose
 * signatures can not be checked are left out, and with them those that refer to them. Where that is for keys that could
 * not be had, the state counts as partial: they may be there later.
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
  const [sentState, sentChain] = [
    await verifiedState(incoming, answer.state, expected),
    await verifiedState(incoming, answer.authChain, expected),
  ];
  const verified = { state: sentState.events, authChain: sentChain.events };
  const { state, authChain } = await dropWithoutAuthEvents(verified, stored, slices);
  const stateByKey = new Map<string, RoomEvent>();
  for (const { event: entry } of state) {
    const key = stateMapKey(entry.type, entry.stateKey!);
    if (stateByKey.has(key)) throw new HandshakeFailure(server, 'the state has an entry twice');
    stateByKey.set(key, entry);
  }
  checkCreate(stateByKey.get(stateMapKey('m.room.create', '')), expected);
  // This server is in the room by its own users only, whatever others say.
  const isOther = (name: string) => name !== serverOfUser(event.event.sender);
  const servers = answer.serversInRoom.filter(isOther);
  if (answer.membersOmitted && servers.length === 0) {
    throw new HandshakeFailure(server, 'it does not say which servers are in the room');
  }
  const verdict = authorize(event.event, lookupIn(stateByKey, authChain, event.event));
  if (!verdict.allowed) throw new HandshakeFailure(server, `the join is not allowed: ${verdict.reason}`);
  if (answer.membersOmitted) return { event, state, authChain, partial: { servers, from: server } };
  if (!sentState.lacksKeys && !sentChain.lacksKeys) return { event, state, authChain };
  const stated = [...new Set([server, ...serversIn(answer.state)])].filter(isOther);
  return { event, state, authChain, partial: { servers: stated, from: server } };
}

/** Servers whose users have joined, as the state says that was sent, whether or not it could be verified. */
function serversIn(state: readonly JsonValue[]): string[] {
  return state.flatMap((pdu) => {
    if (!isJsonObject(pdu) || pdu['type'] !== 'm.room.member' || !isJsonObject(pdu['content'])) return [];
    const { state_key: userId, content } = pdu;
    return isUserId(userId) && content['membership'] === 'join' ? [serverOfUser(userId)] : [];
  });
}

/** The state before the join; members that were left out may be among the events that authorise the join. */
function lookupIn(
  state: ReadonlyMap<string, RoomEvent>,
  authChain: readonly VerifiedEvent[],
  join: RoomEvent,
): StateLookup {
  const named = new Set(join.authEventIds);
  const auth = new Map(
    authChain
      .filter(({ event }) => named.has(event.eventId))
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
  for (const one of await incoming.verify(version, jsons)) {
    if ('error' in one) {
      lacksKeys ||= one.isTemporary === true;
      continue;
    }
    if (one.event.roomId !== roomId) throw new HandshakeFailure(server, 'it holds events of another room');
    if (one.event.stateKey === undefined)
      throw new HandshakeFailure(server, 'it holds events that are no state');
    events.push(one);
  }
  return { events, lacksKeys };
}

function checkCreate(create: RoomEvent | undefined, { server, version }: ExpectedResponse): void {
  if (!create) throw new HandshakeFailure(server, 'the state has no create event');
  const { room_version: stated = '1' } = create.content;
  if (stated !== version.id) throw new HandshakeFailure(server, 'the room has another version');
}
