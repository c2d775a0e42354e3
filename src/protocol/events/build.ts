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

/** The fields of a new event, before hashes and signatures. */
export interface EventDraft {
  readonly type: string;
  readonly sender: string;
  readonly content: JsonObject;
  /** `undefined` for message events. */
  readonly stateKey?: string | undefined;
  /** Absent for the create event of room version 12 and later, whose event id becomes the room id. */
  readonly roomId?: string | undefined;
  /**
   * The server that makes the event, only in events of membership handshakes (make_join, make_leave,
   * make_knock).
   */
  readonly origin?: string | undefined;
  /** One more than the depth of the deepest previous event. */
  readonly depth: number;
  /** Milliseconds since the epoch. */
  readonly originServerTs: number;
  readonly authEventIds: readonly string[];
  readonly prevEventIds: readonly string[];
  /** The event that an `m.room.redaction` redacts; written where the room version puts it. */
  readonly redacts?: string | undefined;
  /** Only for room versions 1 and 2, where the origin chooses ids: `$<unique>:<server>`. */
  readonly eventId?: string | undefined;
  /**
   * Returns the reference hash (unpadded base64) of each auth and previous event, only for room versions 1
   * and 2. `undefined` if the hash is not known; other servers accept references without a hash.
   */
  readonly referenceHash?: ((eventId: string) => string | undefined) | undefined;
}

/** The server and the key that sign an event. */
export interface EventSigner {
  readonly serverName: string;
  readonly key: SigningKey;
}

/** An event that this server has signed. */
export interface BuiltEvent {
  readonly event: RoomEvent;
  /** The PDU as canonical JSON, ready to be stored and sent. */
  readonly json: string;
}

/** A new event that lacks only its signature. Its event id is final: it does not depend on the signature. */
export interface UnsignedEvent {
  /** Has a placeholder in `pdu.signatures` until `complete` is called. */
  readonly event: RoomEvent;
  /** The text that the signature must cover, in UTF-8. */
  readonly signingInput: string;
  /** Inserts the signature (unpadded base64). @returns the PDU as canonical JSON */
  complete(signature: string): string;
}

/**
 * Hashes and signs a new event, in the steps of the specification: adds the content hash, signs the redacted
 * event, and adds the signature to the whole event.
 * Source: server-server API, "Adding hashes and signatures to outgoing events".
 * @throws MatrixError as `prepareEvent` does
 */
export function buildEvent(draft: EventDraft, version: RoomVersion, signer: EventSigner): BuiltEvent {
  const prepared = prepareEvent(draft, version, signer);
  const json = prepared.complete(signer.key.sign(prepared.signingInput));
  return { event: prepared.event, json };
}

/**
 * Stands for the signature (64 bytes in unpadded base64) while a new event is measured, because the size limit
 * includes the signature.
 */
const signaturePlaceholder = 'A'.repeat(86);

/**
 * Hashes a new event without signing it. The caller signs it, for instance on another thread while the event already
 * has its place in the room.
 * @throws MatrixError M_TOO_LARGE if it exceeds a size limit, M_BAD_JSON if the content is not canonical JSON as the
 * room version demands, or if the draft lacks an id or a hash that the room version requires or has an id that it forbids.
 */
export function prepareEvent(
  draft: EventDraft,
  version: RoomVersion,
  { serverName, key }: EventSigner,
): UnsignedEvent {
  const withoutHashes = unsignedPdu(draft, version);
  const canonical = new CanonicalEvent(withoutHashes, version);
  const hashes = { sha256: contentHash(canonical) };
  canonical.hashes = hashes;
  const { signingInput } = canonical;
  const serverSignatures: Record<string, string> = { [key.keyId]: signaturePlaceholder };
  const signatures = { [serverName]: serverSignatures };
  canonical.signatures = signatures;
  const pdu: Pdu = { ...withoutHashes, hashes, signatures };
  checkSize(pdu, canonical.json, 'bytes');
  const eventId = draft.eventId ?? hashEventId(signingInput, version);
  return {
    event: roomEventOf(pdu, version, eventId),
    signingInput,
    complete(signature) {
      serverSignatures[key.keyId] = signature;
      canonical.signatures = signatures;
      return canonical.json;
    },
  };
}

/**
 * Adds a signature to an event from another server: an invite that this server accepts, or a restricted join
 * that it authorises. The event id stays. Sign only events that have been checked.
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
  checkSize(signedPdu, json, version.fieldLimits);
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
    const verb = version.eventId === 'origin' ? 'needs a valid' : 'must not have an';
    throw badJson(`A new event of room version ${version.id} ${verb} event id`);
  }
  const makesRoomId = version.roomId === 'create event' && draft.type === 'm.room.create';
  if (makesRoomId !== (draft.roomId === undefined)) {
    const verb = makesRoomId ? 'must not have' : 'needs';
    throw badJson(`A new ${draft.type} event of room version ${version.id} ${verb} a room id`);
  }
}

function references(ids: readonly string[], draft: EventDraft, version: RoomVersion): JsonValue {
  if (version.eventReferences === 'ids') return ids;
  const { referenceHash } = draft;
  if (referenceHash === undefined && ids.length > 0)
    throw badJson('The reference hashes of auth and previous events are missing');
  return ids.map((id) => {
    const hash = referenceHash!(id);
    return [id, hash === undefined ? {} : { sha256: hash }];
  });
}
