import type { SigningKey } from '../crypto/ed25519.ts';
import { withSignature } from '../crypto/signed-json.ts';
import { badJson } from '../errors.ts';
import type { Pdu, RoomEvent } from '../event.ts';
import { isEventIdOf } from '../identifiers/event-ids.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import type { RoomVersion } from '../room-versions.ts';
import { CanonicalEvent } from './canonical-event.ts';
import { contentHash, hashEventId } from './hashes.ts';
import { checkSize } from './limits.ts';
import { roomEventOf } from './room-event.ts';

/** What an event says, before hashes and signatures. */
export interface EventDraft {
  readonly type: string;
  readonly sender: string;
  readonly content: JsonObject;
  /** `undefined` for message events. */
  readonly stateKey?: string | undefined;
  /** Left out for the create event of room version 12 and later, which makes the room id. */
  readonly roomId?: string | undefined;
  /** The server that makes the event, for those that handshakes are about; other events do not have it. */
  readonly origin?: string | undefined;
  /** One more than the deepest previous event. */
  readonly depth: number;
  /** Milliseconds since the epoch. */
  readonly originServerTs: number;
  readonly authEventIds: readonly string[];
  readonly prevEventIds: readonly string[];
  /** The event to redact, for `m.room.redaction`; written wherever the room version wants it. */
  readonly redacts?: string | undefined;
  /** Only for room versions 1 and 2, where the origin chooses ids: `$<unique>:<server>`. */
  readonly eventId?: string | undefined;
  /**
   * Only for room versions 1 and 2: the reference hash (unpadded base64) of each auth and previous event; `undefined`
   * for those whose hash is not known, which other servers accept.
   */
  readonly referenceHash?: ((eventId: string) => string | undefined) | undefined;
}

/** Who signs. */
export interface EventSigner {
  readonly serverName: string;
  readonly key: SigningKey;
}

export interface BuiltEvent {
  readonly event: RoomEvent;
  /** The PDU as canonical JSON, ready to be stored and sent. */
  readonly json: string;
}

/** A new event that has everything but its signature, which its id does not depend on. */
export interface UnsignedEvent {
  /** Complete as soon as `complete` was called: only `pdu.signatures` is missing until then. */
  readonly event: RoomEvent;
  /** What the signature must cover, in UTF-8. */
  readonly signingInput: string;
  /** Puts the signature (unpadded base64) in. @returns the PDU as canonical JSON */
  complete(signature: string): string;
}

/**
 * Hashes and signs a new event.
 * Source: server-server API, "Adding hashes and signatures to outgoing events".
 * @throws MatrixError as `prepareEvent` does
 */
export function buildEvent(draft: EventDraft, version: RoomVersion, signer: EventSigner): BuiltEvent {
  const unsigned = prepareEvent(draft, version, signer);
  const json = unsigned.complete(signer.key.sign(unsigned.signingInput));
  return { event: unsigned.event, json };
}

/** Room for the one signature of a new event: the size limit counts it before it is there. */
const signaturePlaceholder = 'A'.repeat(86);

/**
 * Hashes a new event, for signing elsewhere: on another thread, while the event has its place in the room already.
 * @throws MatrixError M_TOO_LARGE if it breaks a size limit, M_BAD_JSON if the content is not canonical JSON as the
 * room version demands, or if an id is missing that the room version needs.
 */
export function prepareEvent(
  draft: EventDraft,
  version: RoomVersion,
  { serverName, key }: EventSigner,
): UnsignedEvent {
  const bare = unsignedPdu(draft, version);
  const canonical = new CanonicalEvent(bare, version);
  const hashes = { sha256: contentHash(canonical) };
  canonical.hashes = hashes;
  const { signingInput } = canonical;
  const ofServer: Record<string, string> = { [key.keyId]: signaturePlaceholder };
  const signatures = { [serverName]: ofServer };
  canonical.signatures = signatures;
  const pdu: Pdu = { ...bare, hashes, signatures };
  checkSize(pdu, canonical.json, version);
  const eventId = draft.eventId ?? hashEventId(signingInput, version);
  return {
    event: roomEventOf(pdu, version, eventId),
    signingInput,
    complete(signature) {
      ofServer[key.keyId] = signature;
      canonical.signatures = signatures;
      return canonical.json;
    },
  };
}

/**
 * Adds a signature to an event that another server made: an invite that this server accepts, or a restricted join
 * that it vouches for. The id stays. Sign only what has been checked before.
 * @throws MatrixError M_TOO_LARGE
 */
export function signEvent(event: RoomEvent, signer: EventSigner): BuiltEvent {
  const { pdu, version, eventId } = event;
  const canonical = new CanonicalEvent(pdu, version);
  const signature = signer.key.sign(canonical.signingInput);
  const signatures = withSignature(pdu.signatures, signer.serverName, signer.key.keyId, signature);
  canonical.signatures = signatures;
  const signedPdu: Pdu = { ...pdu, signatures };
  const json = canonical.json;
  checkSize(signedPdu, json, version);
  return { event: roomEventOf(signedPdu, version, eventId), json };
}

function unsignedPdu(draft: EventDraft, version: RoomVersion): Pdu {
  const { redacts, stateKey, roomId, eventId, origin } = draft;
  checkIds(draft, version);
  const redactsInContent = redacts !== undefined && version.redactsIn === 'content';
  return {
    auth_events: references(draft.authEventIds, draft, version),
    content: redactsInContent ? { ...draft.content, redacts } : draft.content,
    depth: Math.min(draft.depth, Number.MAX_SAFE_INTEGER),
    ...(eventId === undefined ? undefined : { event_id: eventId }),
    ...(origin === undefined ? undefined : { origin }),
    origin_server_ts: draft.originServerTs,
    prev_events: references(draft.prevEventIds, draft, version),
    ...(redacts === undefined || redactsInContent ? undefined : { redacts }),
    ...(roomId === undefined ? undefined : { room_id: roomId }),
    sender: draft.sender,
    ...(stateKey === undefined ? undefined : { state_key: stateKey }),
    type: draft.type,
  };
}

function checkIds(draft: EventDraft, version: RoomVersion): void {
  if (version.eventId === 'origin' ? !isEventIdOf(version, draft.eventId) : draft.eventId !== undefined) {
    throw badJson(`Room version ${version.id} has event ids from ${version.eventId}`);
  }
  const makesRoomId = version.roomId === 'create event' && draft.type === 'm.room.create';
  if (makesRoomId !== (draft.roomId === undefined)) {
    throw badJson(`Room version ${version.id} has room ids from ${version.roomId}`);
  }
}

function references(ids: readonly string[], draft: EventDraft, version: RoomVersion): JsonValue {
  if (version.eventReferences === 'ids') return ids;
  const { referenceHash } = draft;
  if (referenceHash === undefined && ids.length > 0) throw badJson('Reference hashes are missing');
  return ids.map((id) => {
    const hash = referenceHash!(id);
    return [id, hash === undefined ? {} : { sha256: hash }];
  });
}
